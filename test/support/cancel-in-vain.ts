/**
 * A program for tests: cancels a query while the server accepts no further connection, on which it would be asked to. Prints
 * JSON. Its argument is the URL of a database, which it reaches through a port of its own.
 */
import net from "node:net";
import postgres from "postgres";
import { until } from "./poll";

const unhandled: string[] = [];
process.on("unhandledRejection", (error) => {
  unhandled.push(String(error));
});

const url = new URL(process.argv[2]!);
const target = { port: Number(url.port || 5432), host: url.hostname };
const line = net.createServer((near) => {
  const far = net.connect(target);
  near.pipe(far).pipe(near);
});
await new Promise<void>((resolve) => line.listen(0, "127.0.0.1", resolve));
url.host = `127.0.0.1:${(line.address() as net.AddressInfo).port}`;
const sql = postgres(url.href, { max: 1, fetch_types: false });
await sql`select 1`;
const slow = sql`select pg_sleep(1)`.execute();
const isSent = () => (slow as unknown as { active: boolean }).active;
await until(isSent, { what: "it has been sent", intervalMs: 1 });
line.close();
slow.cancel();
const answer = await slow.then(
  () => "ok",
  (error: unknown) => String((error as { code?: unknown }).code),
);
console.log(JSON.stringify({ answer, unhandled }));
await sql.end({ timeout: 1 });
