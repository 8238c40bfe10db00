/** `bun run up [--sandbox]`: all of Basetide on this machine, with a Postgres of its own unless DATABASE_URL is set. */
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
  // Whoever does not want to wait asks a second time; Postgres follows us in its own way.
  void nextSignal().then(() => process.exit(1));
  await releases.disposeAsync();
  if (why instanceof BasetideError) throw why;
} catch (error) {
  await endFailed("up", error, releases);
}

/** @throws BasetideError `config_invalid` for an argument that is none */
function readArguments(): { sandbox: boolean } {
  try {
    const { values } = parseArgs({ options: { sandbox: { type: "boolean", default: false } } });
    return values;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new BasetideError("config_invalid", `${reason}. Usage: bun run up [--sandbox]`, { cause });
  }
}

/** The first of them to come. */
function nextSignal(): Promise<string> {
  return Promise.race(["SIGTERM", "SIGINT"].map((name) => once(process, name).then(() => name)));
}
