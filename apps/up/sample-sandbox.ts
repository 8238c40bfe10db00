/** The sandbox with sample bases: real ones where their folder is there, and one that is made up. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../core/config";
import { startSandbox } from "../sandbox/server";
import { startLife } from "./life";

/** Folders of the data folder, and what their bases are called. */
const SAMPLES = [
  { folder: "cmip7-data-request", name: "CMIP7 Data Request" },
  { folder: "unlocking-the-airwaves", name: "Unlocking the Airwaves" },
];
/** The same at every start, so that what is connected to it stays. */
const MADE_UP = { name: "Project Tracker", records: 1000, tables: 4, seed: 1 };

export interface SandboxAddress {
  url: string;
  /** Opens every base of the sandbox. */
  apiKey: string;
  /** The base in which people seem to be at work. */
  liveBaseId: string;
  /** In place of `UPSTREAMS`: the source's hosts, reached at the sandbox. */
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
