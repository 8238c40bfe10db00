/**
 * The log: pino, one JSON line per event, on standard output.
 *
 * Messages are constant and facts are fields. No line may contain credentials or customers' cells: the paths below are
 * redacted, and each line is scrubbed, in case a secret is passed by mistake.
 */
import pino from "pino";
import { requestId } from "./request-id";
import { scrub } from "./scrub";
import { printableJson } from "./terminal";

export type Logger = pino.Logger;

const SECRET_PATHS = ["apiKey", "password", "token", "authorization", "url", "secretKey"];

/**
 * Creates the process's logger; children carry `baseId`, `tableId`, `jobId`, and lines of a request carry its id.
 *
 * @param clean removes secrets from a line, including those of this process
 */
export function createLogger(level: string, role: string, clean: (line: string) => string = scrub): Logger {
  return pino({
    level,
    base: { role },
    timestamp: pino.stdTimeFunctions.isoTime,
    mixin: () => ({ requestId: requestId() }),
    redact: { paths: SECRET_PATHS.flatMap((path) => [path, `*.${path}`]), censor: "[redacted]" },
    serializers: { error: pino.stdSerializers.errWithCause },
    // In `bun run up` the log goes to a terminal.
    hooks: { streamWrite: (line) => printableJson(clean(line)) },
  });
}
