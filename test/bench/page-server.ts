/**
 * A source for `page.ts`, in a process of its own so that its CPU is not counted: one page of a list answer, plain at
 * `/plain/…` and compressed at `/gzip/…`. Prints its port, and ends with its standard input.
 */
const RECORDS = 100;
/** The approximate size of a record's JSON in bytes. */
const RECORD_BYTES = 600;

const page = Buffer.from(
  JSON.stringify({ records: Array.from({ length: RECORDS }, record), offset: "itrA/recA" }),
);
const gzip = Bun.gzipSync(page);

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch(request) {
    const isGzip = new URL(request.url).pathname.startsWith("/gzip/");
    return new Response(isGzip ? gzip : page, {
      headers: { "content-type": "application/json", ...(isGzip && { "content-encoding": "gzip" }) },
    });
  },
});
console.log(server.port);
for await (const _ of Bun.stdin.stream());
await server.stop(true);

/** Texts, numbers, dates, links and one collaborator: typical cells. */
function record(_: unknown, index: number) {
  const fields: Record<string, unknown> = {
    fldName0000000001: `Record ${index}`,
    fldPrice000000002: index * 1.25,
    fldDate0000000003: "2024-05-06",
    fldLinks000000004: [`rec${String(index).padStart(14, "0")}`, "recAAAAAAAAAAAAAA"],
    fldOwner000000005: { id: "usrAAAAAAAAAAAAAA", email: "ada@example.org", name: "Ada" },
    fldNotes000000006: "",
  };
  const made = {
    id: `rec${String(index).padStart(14, "0")}`,
    createdTime: "2024-01-02T03:04:05.000Z",
    fields,
  };
  fields.fldNotes000000006 = `Line ${index}\n`
    .repeat(100)
    .slice(0, RECORD_BYTES - JSON.stringify(made).length - 20);
  return made;
}

export {};
