/**
 * A source for `page.ts`, in a process of its own so that its CPU is not counted: pages of 100 records, over TLS and
 * compressed. Writes its certificate to the file that its argument names, prints its port, and ends with its standard
 * input.
 *
 * The base's id names the form of the page. An answer has an offset of the list that was requested, or of the next one,
 * and other signed URLs than the one before, as the source's have; only `last` has no offset.
 */
import { writeFileSync } from "node:fs";
import { createAuthority } from "../../core/http";

const RECORDS = 100;
/** The answers with different offsets and URLs that are sent in turn. */
const ANSWERS = 8;

const authority = createAuthority("A bench's");
writeFileSync(process.argv[2]!, authority.certificate);
const { certificate: cert, key } = authority.issue(["127.0.0.1"]);

const forms = {
  usual: Array.from({ length: ANSWERS }, (_, nth) => compressed(record, nth)),
  last: [compressed(record, undefined)],
  attachments: Array.from({ length: ANSWERS }, (_, nth) => compressed(recordWithAttachment, nth)),
};
let next = 0;

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  tls: { cert, key },
  async fetch(request) {
    const list = /itrA+(\d)\//.exec(await request.text())?.[1];
    const form = new URL(request.url).pathname.split("/")[2]!.slice(3) as keyof typeof forms;
    const answers = forms[form];
    return new Response(answers[Number(list ?? next++) % answers.length], {
      headers: {
        "content-type": "application/json; charset=utf-8",
        "content-encoding": "gzip",
        "access-control-allow-origin": "*",
        "access-control-allow-methods": "DELETE,GET,OPTIONS,PATCH,POST,PUT",
        date: new Date().toUTCString(),
        server: "Tengine",
        "strict-transport-security": "max-age=31536000; includeSubDomains; preload",
        vary: "Accept-Encoding",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
      },
    });
  },
});
console.log(server.port);
for await (const _ of Bun.stdin.stream());
await server.stop(true);

function compressed(recordAt: (index: number, answer: number) => unknown, answer: number | undefined) {
  const records = Array.from({ length: RECORDS }, (_, index) => recordAt(index, answer ?? 0));
  const offset = answer === undefined ? undefined : `itrAAAAAAAAAAAAA${answer}/recAAAAAAAAAAAAAA`;
  return Bun.gzipSync(Buffer.from(JSON.stringify({ records, offset })));
}

/** Texts, numbers, dates, links and one collaborator: typical cells, about 500 bytes. */
function record(index: number) {
  return {
    id: `rec${String(index).padStart(14, "0")}`,
    createdTime: "2024-01-02T03:04:05.000Z",
    fields: {
      fldName0000000001: `Record ${index}`,
      fldPrice000000002: noise(index) * 1000,
      fldDate0000000003: "2024-05-06",
      fldLinks000000004: [`rec${String(index).padStart(14, "0")}`, "recAAAAAAAAAAAAAA"],
      fldOwner000000005: { id: "usrAAAAAAAAAAAAAA", email: "ada@example.org", name: "Ada" },
      fldNotes000000006: Array.from({ length: 30 }, (_, word) =>
        noise(index * 30 + word)
          .toString(36)
          .slice(2, 8),
      ).join(" "),
    },
  };
}

/** Every second record has an image. */
function recordWithAttachment(index: number, answer: number) {
  const one = record(index);
  if (index % 2 === 0) return one;
  const url = (part: number) =>
    `https://v5.airtableusercontent.com/v3/u/47/47/17000000000${answer}/${"x".repeat(22)}/${noise(
      answer * 1000 + index + part,
    )
      .toString(36)
      .repeat(18)}`;
  const image = {
    id: `att${String(index).padStart(14, "0")}`,
    width: 1200,
    height: 800,
    url: url(0.1),
    filename: `photo ${index}.jpg`,
    size: 123_456 + index,
    type: "image/jpeg",
    thumbnails: {
      small: { url: url(0.2), width: 54, height: 36 },
      large: { url: url(0.3), width: 768, height: 512 },
      full: { url: url(0.4), width: 3000, height: 3000 },
    },
  };
  return { ...one, fields: { ...one.fields, fldPhoto000000007: [image] } };
}

/** The same for the same number: an answer does not change from request to request. */
function noise(of: number): number {
  return Number(Bun.hash.wyhash(String(of)) % 1_000_000_007n) / 1_000_000_007;
}
