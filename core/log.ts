/**
 * The log: pino, one JSON line per event, on standard output.
 *
 * Messages are constant and facts are fields. Nothing that opens a door or belongs to a customer's cells goes
 * into a line; the paths below are redacted in case one is passed by mistake.
 */
import pino from "pino";

export type Logger = pino.Logger;

const SECRET_PATHS = ["apiKey", "password", "token", "authorization", "url", "secretKey"];

/** The process's logger; children carry `baseId`, `tableId`, `jobId`. */
export function createLogger(level: string, role: string): Logger {
  return pino({
    level,
    base: { role },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: SECRET_PATHS.flatMap((path) => [path, `*.${path}`]), censor: "[redacted]" },
    serializers: { error: pino.stdSerializers.errWithCause },
  });
}
