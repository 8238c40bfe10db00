/** Starts the sandbox with sample bases: real ones if their folder exists, and a generated one. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../core/config";
import { startSandbox } from "../sandbox/server";
import { startLife } from "./life";

/** Folders of the data folder, and the names of their bases. */
const SAMPLES = [
  { folder: "cmip7-data-request", name: "CMIP7 Data Request" },
  { folder: "unlocking-the-airwaves", name: "Unlocking the Airwaves" },
];
/** The same at every start, so that connected bases stay valid. */
const MADE_UP = { name: "Project Tracker", records: 1000, tables: 4, seed: 1 };

export interface SandboxAddress {
  url: string;
  /** Can read every base of the sandbox. */
  apiKey: string;
  /** The base that the simulated users edit. */
  liveBaseId: string;
  /** Used as `UPSTREAMS`: maps the source's hosts to the sandbox. */
  upstreams: Record<string, string>;
}

/** @throws BasetideError `port_taken` */
export async function startSampleSandbox(
  config: Pick<Config, "sandboxPort" | "upstreams">,
  dataFolder: string | undefined,
  releases: AsyncDisposableStack,
): Promise<SandboxAddress> {
  const sandbox = releases.use(await startSandbox({ port: config.sandboxPort }));
  for (const { folder, name } of dataFolder ? SAMPLES : []) {
    const path = join(dataFolder!, folder);
    if (existsSync(path)) sandbox.control.load({ folder: path, name });
  }
  const liveBaseId = sandbox.control.generate(MADE_UP);
  releases.use(startLife(sandbox, liveBaseId));
  const upstreams = Object.fromEntries(Object.keys(config.upstreams).map((host) => [host, sandbox.url]));
  return { url: sandbox.url, apiKey: sandbox.key, liveBaseId, upstreams };
}
