/**
 * A process that owns an embedded Postgres, for tests that kill it: prints one JSON line `{url, port, adopted}`, or
 * `{error}`, then waits for SIGTERM and stops the server.
 *
 * Usage: bun postgres-owner.ts <data folder> <port> [setpriv|shell]
 */
import { startEmbeddedPostgres } from "../../apps/up/postgres/embedded-postgres";
import { asBasetideError } from "../../core/errors";
import { createLogger } from "../../core/log";

const [dataDir, port, keeper] = process.argv.slice(2);
try {
  const server = await startEmbeddedPostgres({
    dataDir: dataDir!,
    port: Number(port),
    log: createLogger("silent", "test"),
    settings: { fsync: "off", max_connections: "50" },
    ...(keeper === "shell" || keeper === "setpriv" ? { keeper } : {}),
  });
  // In Bun's types, only the event emitter that `process` extends knows signals.
  const signals: NodeJS.EventEmitter = process;
  signals.once("SIGTERM", () => void server.stop().then(() => process.exit(0)));
  // Keeps the process open, independent of the server's own handles.
  setInterval(() => {}, 60_000);
  console.log(JSON.stringify({ url: server.url, port: server.port, adopted: server.adopted }));
} catch (error) {
  const { code, message } = asBasetideError(error);
  console.log(JSON.stringify({ error: `${code}: ${message}` }));
  process.exit(1);
}
