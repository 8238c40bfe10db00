/** A fleet whose source breaks as tests want, and how it syncs its bases. */
import { type SandboxHandle, startSandbox } from "../../apps/sandbox/server";
import { type BrokenSource, startBrokenSource } from "./broken-source";
import type { Fleet } from "./fleet";
import { startLiveFleet } from "./live-fleet";

/** The settings of each mode. */
export const MODES = { sweep: {}, rapid: { rapid: true }, live: { live: true } } as const;

export interface BrokenFleet extends AsyncDisposable {
  fleet: Fleet;
  sandbox: SandboxHandle;
  source: BrokenSource;
}

export async function startBrokenFleet(): Promise<BrokenFleet> {
  await using starting = new AsyncDisposableStack();
  const sandbox = starting.use(await startSandbox({ port: 0, settings: { rateLimitOff: true } }));
  const source = starting.use(await startBrokenSource(sandbox.url));
  const fleet = starting.use(
    await startLiveFleet({
      source: { ...sandbox, url: source.url } as SandboxHandle,
      // What is not answered hangs for longer than anything waits for it.
      env: { SCHEMA_POLL_SECONDS: "1", UPSTREAM_TIMEOUT_MS: "10000" },
    }),
  );
  const running = starting.move();
  return { fleet, sandbox, source, [Symbol.asyncDispose]: () => running.disposeAsync() };
}
