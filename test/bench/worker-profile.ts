/** A CPU profile of a worker process for as long as it is measured: the first SIGUSR1 begins it, the second writes it. */
import { existsSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { join } from "node:path";
import { until } from "../support/poll";
import type { Program } from "../support/program";

const FILE = "worker.cpuprofile";
const WRITTEN_MS = 60_000;

/** For the worker. @param folder absolute */
export function profileOnSignal(folder: string): void {
  let session: Session | undefined;
  process.on("SIGUSR1", async () => {
    if (!session) {
      session = new Session();
      session.connect();
      await session.post("Profiler.enable");
      await session.post("Profiler.start");
      return;
    }
    const { profile } = await session.post("Profiler.stop");
    await Bun.write(join(folder, FILE), JSON.stringify(profile));
  });
}

/** Profiles the worker while `work` runs. */
export async function profiled<T>(worker: Program, folder: string, work: () => Promise<T>): Promise<T> {
  worker.kill("SIGUSR1");
  const result = await work();
  worker.kill("SIGUSR1");
  await until(() => existsSync(join(folder, FILE)), {
    what: "the profile is written",
    timeoutMs: WRITTEN_MS,
  });
  return result;
}
