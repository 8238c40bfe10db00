/**
 * A program for tests: shows what happens to a pool of one connection whose server goes away in the middle of a
 * transaction, and again during a query. Prints JSON. Its argument is the URL of a database, which it reaches through a
 * proxy of its own.
 */
import postgres from "postgres";
import { cuttableProxy } from "./cuttable-proxy";

const thrown: string[] = [];
process.on("uncaughtException", ({ message }) => {
  thrown.push(message);
});

await using line = await cuttableProxy(process.argv[2]!);
let closed = Promise.withResolvers<void>();
const sql = postgres(line.url, {
  max: 1,
  connect_timeout: 3,
  backoff: () => 0.03,
  onclose: () => closed.resolve(),
});

/** Cuts the connection, and waits until the driver has noticed. */
async function cut(): Promise<void> {
  closed = Promise.withResolvers();
  line.cut();
  await closed.promise;
  line.restore();
}

const codeOf = (error: unknown) => String((error as { code?: unknown }).code);
/** More than the driver buffers before it writes. */
const text = "x".repeat(5000);
let late: Promise<string> | undefined;
const transaction = await sql
  .begin(async (tx) => {
    await tx`select 1`;
    await cut();
    // The transaction has not noticed yet, and continues.
    late = tx`select length(${text})`.then(() => "ok", codeOf);
    await late;
    await tx`select 2`;
  })
  .then(() => "ok", codeOf);
const statement = await late;
// Uses the same connection, reconnected.
const afterwards = await sql`select 3`.then(() => "ok", codeOf);
const pending = sql`select 4`.then(() => "ok", codeOf);
await cut();
await pending;
const atLast = await sql`select 5`.then(() => "ok", codeOf);
const driver = import.meta.resolve("postgres");
console.log(JSON.stringify({ driver, transaction, statement, afterwards, atLast, thrown }));
await sql.end({ timeout: 1 });
