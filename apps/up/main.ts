/**
 * `bun run up [--sandbox]`: runs all of Basetide on this machine, with an embedded Postgres unless DATABASE_URL is set.
 */
import { parseArgs } from "node:util";
import { readConfig } from "../../core/config";
import { BasetideError } from "../../core/errors";
import { createLogger } from "../../core/log";
import { endAtFaults, endFailed, releasedInTime, stopSignal } from "../../core/process";
import { findDataFolder } from "./data-folder";
import { describeUp } from "./describe";
import { startUp } from "./up";

const USAGE = "Usage: bun run up [--sandbox]";

endAtFaults({ log: createLogger("fatal", "up") });
const releases = new AsyncDisposableStack();
try {
  // A second signal ends the process at once; the embedded Postgres then stops by itself.
  const stopped = stopSignal();
  const up = await startUp(
    // On a terminal: the address, and then only what matters.
    readConfig({ LOG_LEVEL: "warn", ...process.env }),
    { sandbox: readArguments().sandbox, dataFolder: findDataFolder(process.env) },
    releases,
  );
  console.log(describeUp(up));
  const why = await Promise.race([stopped, up.failed]);
  if (typeof why === "string") console.log("\nStopping…");
  // Before the release, which may fail for the same reason.
  if (why instanceof BasetideError) throw why;
  const isStopped = await releasedInTime(releases);
  console.log(
    isStopped ? "Stopped." : "It does not stop, and ends as it is; the embedded Postgres stops by itself.",
  );
  process.exit(isStopped ? 0 : 1);
} catch (error) {
  await endFailed("up", error, releases);
}

/** @throws BasetideError `config_invalid` for an unknown argument */
function readArguments(): { sandbox: boolean } {
  try {
    const { values } = parseArgs({
      options: { sandbox: { type: "boolean", default: false }, help: { type: "boolean", short: "h" } },
    });
    if (values.help) {
      console.log(USAGE);
      process.exit(0);
    }
    return values;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new BasetideError("config_invalid", `${reason}. ${USAGE}`, { cause });
  }
}
