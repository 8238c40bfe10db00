/**
 * Measures how many unchanged list pages (100 records, 15 fields) the sandbox serves in a second, so that it is never
 * the bottleneck in a bench of Basetide.
 *
 * Server and client are separate processes. Besides pages per second, it prints the server's own CPU time per page: on
 * a busy machine, only that (as pages per second of one core) is comparable.
 *
 * Run: `bun test/bench/sandbox.ts [seconds per line]`
 */
import { readFileSync } from "node:fs";
import { DEFAULT_KEY } from "../../apps/sandbox/server";

const CONNECTIONS = 8;
const RECORDS = 10_000;
/** Of the times in /proc/<pid>/stat on Linux. */
const TICKS_PER_SECOND = 100;

const seconds = Number(process.argv[2] ?? 3);
const server = Bun.spawn(["bun", `${import.meta.dir}/../../apps/sandbox/main.ts`], {
  env: { ...process.env, SANDBOX_PORT: "0" },
  stdout: "pipe",
  stderr: "inherit",
});

try {
  const url = await addressOf(server.stdout);
  for (const fieldsPerTable of [15, 16]) {
    const baseId = await generate(url, fieldsPerTable);
    for (const encoding of ["identity", "gzip"]) await measure(url, baseId, fieldsPerTable, encoding);
  }
} finally {
  server.kill();
}

async function addressOf(output: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  for await (const chunk of output) {
    text += new TextDecoder().decode(chunk);
    const [, url] = /Sandbox: (\S+)/.exec(text) ?? [];
    if (url) return url;
  }
  throw new Error("The sandbox ended before it said where it listens.");
}

async function generate(url: string, fieldsPerTable: number): Promise<string> {
  const post = (path: string, body: object) =>
    fetch(`${url}/_sandbox/${path}`, { method: "POST", body: JSON.stringify(body) });
  await post("settings", { rateLimitOff: true });
  const answer = await post("generate", {
    records: RECORDS,
    tables: 2,
    seed: fieldsPerTable,
    fieldsPerTable,
  });
  return ((await answer.json()) as { baseId: string }).baseId;
}

/** Requests every page of both tables once to fill the caches, and then repeatedly. */
async function measure(url: string, baseId: string, fieldsPerTable: number, encoding: string): Promise<void> {
  await pagesFor(url, baseId, encoding, 1);
  const cpuBefore = cpuMs(server.pid);
  const began = performance.now();
  const { pages, bytes } = await pagesFor(url, baseId, encoding, seconds * 1000);
  const tookMs = performance.now() - began;
  const perPageMs = (cpuMs(server.pid) - cpuBefore) / pages;
  const what = fieldsPerTable > 15 ? "16 fields, one of attachments" : "15 fields";
  console.log(
    `${what}, ${encoding}: ${Math.round((pages / tookMs) * 1000)} pages/s, ` +
      `${Math.round(perPageMs * 1000)} µs of server CPU per page (${Math.round(1000 / perPageMs)} pages/s of a core), ` +
      `${Math.round(bytes / pages / 1024)} kB on the wire`,
  );
}

async function pagesFor(url: string, baseId: string, encoding: string, ms: number) {
  const until = performance.now() + ms;
  const counts = { pages: 0, bytes: 0 };
  const sweep = async (table: string) => {
    do {
      let offset: string | undefined = "";
      while (offset !== undefined) {
        const answer: Response = await fetch(
          `${url}/v0/${baseId}/${table}?returnFieldsByFieldId=true&offset=${encodeURIComponent(offset)}`,
          {
            headers: { authorization: `Bearer ${DEFAULT_KEY}`, "accept-encoding": encoding },
            decompress: false,
          },
        );
        const body = Buffer.from(await answer.arrayBuffer());
        if (answer.status !== 200) throw new Error(`${answer.status} ${body.toString()}`);
        counts.pages += 1;
        counts.bytes += body.length;
        offset = offsetOf(body, encoding === "gzip");
      }
    } while (performance.now() < until);
  };
  const tables = ["Projects", "Tasks"];
  await Promise.all(Array.from({ length: CONNECTIONS }, (_, i) => sweep(tables[i % tables.length]!)));
  return counts;
}

/**
 * The offset at the end of a page. The sandbox puts it into a stored block at the end of its gzip stream, so that the
 * client need not inflate: only the server is measured.
 */
function offsetOf(body: Buffer, isGzipped: boolean): string | undefined {
  const end = body.subarray(isGzipped ? -80 : -70).toString("latin1");
  return /"offset":"([^"]+)"/.exec(end)?.[1];
}

function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND;
}
