/**
 * `bun run up [--sandbox]`: runs all of Basetide on this machine, with an embedded Postgres unless DATABASE_URL is set.
 */
import { once } from "node:events";
import { parseArgs } from "node:util";
import { readConfig } from "../../core/config";
import { BasetideError } from "../../core/errors";
import { createLogger } from "../../core/log";
import { endAtFaults, endFailed } from "../../core/process";
import { findDataFolder } from "./data-folder";
import { describeUp } from "./describe";
import { startUp } from "./up";

endAtFaults({ log: createLogger("fatal", "up") });
const releases = new AsyncDisposableStack();
try {
  const stopped = nextSignal();
  const up = await startUp(
    readConfig(process.env),
    { sandbox: readArguments().sandbox, dataFolder: findDataFolder(process.env) },
    releases,
  );
  console.log(describeUp(up));
  const why = await Promise.race([stopped, up.failed]);
  // A second signal ends the process at once; the embedded Postgres then stops by itself.
  void nextSignal().then(() => process.exit(1));
  // Before the release, which may fail for the same reason.
  if (why instanceof BasetideError) throw why;
  await releases.disposeAsync();
  process.exit(0);
} catch (error) {
  await endFailed("up", error, releases);
}

/** @throws BasetideError `config_invalid` for an unknown argument */
function readArguments(): { sandbox: boolean } {
  try {
    const { values } = parseArgs({ options: { sandbox: { type: "boolean", default: false } } });
    return values;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new BasetideError("config_invalid", `${reason}. Usage: bun run up [--sandbox]`, { cause });
  }
}

/** Resolves with the first signal. */
function nextSignal(): Promise<string> {
  return Promise.race(["SIGTERM", "SIGINT"].map((name) => once(process, name).then(() => name)));
}
