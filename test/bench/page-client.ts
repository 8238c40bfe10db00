/**
 * The client of `page.ts`, which trusts the server's certificate from its start: CPU of all threads per request, by how
 * much of the path it runs. Requests run at once, as those of many bases do. The ways alternate, and the median of each
 * counts: only ratios and differences within one run are meaningful.
 */
import { Registry } from "prom-client";
import { gunzipAtOnce } from "../../core/http";
import { poolOf } from "../../core/http/connections";
import { MeteredSource } from "../../core/limiter";
import { createLogger } from "../../core/log";
import type { RecordPage, RememberedPage, SourceConnection, SourceTable } from "../../core/source";
import { createAirtable } from "../../core/source/airtable";
import { syncMetrics } from "../../core/sync/lease/metrics";
import { Fingerprints, fingerprintIn, validUntil } from "../../core/sync/state";
import { span, startTracing } from "../../core/trace";
import { unlimitedLimiter } from "../support/unlimited-limiter";
import { table } from "./print";

const AT_ONCE = 20;
const REQUESTS = Number(process.env.PAGE_REQUESTS ?? 2000);
const TURNS = Number(process.env.PAGE_TURNS ?? 9);
const WARM_TURNS = 3;
const PAGES = 10;
/** The lists that pages are read in, in turn. */
const LISTS = 8;
const MIB = 2 ** 20;

const never = new AbortController().signal;
const origin = process.argv[2]!;
const isTraced = process.argv[3] === "traced";
const source: SourceTable = {
  id: "tblAAAAAAAAAAAAAA",
  name: "A",
  primaryFieldId: "fldName0000000001",
  fields: [
    { id: "fldName0000000001", name: "Name", type: "text", sourceType: "singleLineText" },
    { id: "fldPhoto000000007", name: "Photo", type: "attachment", sourceType: "multipleAttachments" },
  ],
};
const head = "Authorization: Bearer patA.secret\r\nAccept: application/json\r\nAccept-Encoding: gzip\r\n";
const body = JSON.stringify({ pageSize: 100, returnFieldsByFieldId: true, offset: offsetOf(0) });

/** Only the bytes: what any client costs. */
async function exchange(form: string): Promise<Buffer> {
  const held = await poolOf(origin).take(never);
  const path = `/v0/app${form}/${source.id}/listRecords`;
  const asked = { method: "POST", path, head, body, mostBytes: 8 * MIB, timeoutMs: 30_000 };
  return (await held.exchange(asked, never)).body;
}

function offsetOf(list: number): string {
  return `itrAAAAAAAAAAAAA${list}/recA`;
}

/** A sweep that reads a page again and again, each time in another list unless it is the first page. */
function sweepOf(form: string, { isFirst = false } = {}) {
  const upstreams = { "api.airtable.com": origin };
  const connection = createAirtable({ upstreams, timeoutMs: 30_000 }).connect("patA.secret");
  const limiter = unlimitedLimiter({
    acquireSync: async (_key, _share, signal, { connections } = {}) => connections?.take(signal),
  });
  const [log, metrics] = [createLogger("info", "bench"), syncMetrics(new Registry())];
  const metered = new MeteredSource({
    connection,
    sourceBaseId: `app${form}`,
    limiter,
    quotaKey: `airtable:app${form}`,
    queue: { priority: "sync", share: () => 3, signal: never },
    signal: never,
    kind: "sweep",
    isOneOfMany: true,
    onSend: () => metrics.requested("sweep"),
  });
  let lists = 0;
  const list = (one: SourceConnection, fingerprints: Fingerprints, before?: RememberedPage) =>
    one.listPage(
      `app${form}`,
      source,
      {
        offset: isFirst ? undefined : offsetOf(lists++ % LISTS),
        isKnown: (digest) => fingerprints.knowsPage(0, digest, performance.now()),
        before,
      },
      never,
    );
  /** Each of the requests that run at once is one of another base. */
  const bases = Array.from({ length: AT_ONCE }, () => ({
    fingerprints: new Fingerprints(),
    before: undefined as RememberedPage | undefined,
  }));
  const see = (page: RecordPage, base: (typeof bases)[number]) => {
    const { fingerprints } = base;
    fingerprints.beginScan();
    const [now, live] = [performance.now(), { hasLastingUrls: false }];
    const of = (index: number) => fingerprintIn(live, page, index, now);
    const time = { now, validUntil: () => validUntil(live, page, now) };
    for (const index of fingerprints.seePage(page, of, 0, time))
      fingerprints.learn(page.id(index), of(index));
    base.before = page.remembered;
  };
  return {
    async list(nth: number) {
      const base = bases[nth]!;
      see(await list(connection, base.fingerprints, base.before), base);
    },
    async metered(nth: number) {
      const base = bases[nth]!;
      see(await metered.send((one) => list(one, base.fingerprints, base.before)), base);
      log.debug({ nth }, "a page was read");
    },
    async split() {
      const page = await connection.listPage(`app${form}`, source, {}, never);
      for (let index = 0; index < page.size; index++) fingerprintIn({ hasLastingUrls: false }, page, index);
    },
  };
}

const [usual, first, last, attachments] = [
  sweepOf("usual"),
  sweepOf("usual", { isFirst: true }),
  sweepOf("last"),
  sweepOf("attachments"),
];
const ways: Record<string, (nth: number) => Promise<unknown>> = {
  "bytes only": () => exchange("usual"),
  "and decompressed": async () => gunzipAtOnce(await exchange("usual")),
  "a known page": usual.list,
  "a known page, the first of its list": first.list,
  "within the limiter, with metrics and logs": usual.metered,
  "a changed page, split": usual.split,
  "a known last page": last.list,
  "a known page with 50 attachments": attachments.list,
  "the same, split": attachments.split,
};
// Its spans go to no collector.
if (isTraced) await startTracing("bench", "http://127.0.0.1:9", createLogger("fatal", "bench"));
const costs = new Map(Object.keys(ways).map((name) => [name, [] as number[]]));
for (let turn = -WARM_TURNS; turn < TURNS; turn++) {
  for (const [name, way] of Object.entries(ways)) {
    const cost = await cpuPerRequest(way);
    if (turn >= 0) costs.get(name)!.push(cost);
  }
}
const medians = [...costs].map(([name, all]) => [name, median(all)] as const);
const least = medians[0]![1];
table(
  [isTraced ? "µs of CPU per request, traced" : "µs of CPU per request", "", "of the bytes only"],
  medians.map(([name, cost]) => [name, cost.toFixed(0), (cost / least).toFixed(2)]),
);
process.exit(0);

async function cpuPerRequest(way: (nth: number) => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  let left = REQUESTS;
  // Sweeps of ten pages.
  const some = async (_: unknown, nth: number) => {
    while (left > 0) {
      await span("sync", {}, async () => {
        for (let page = 0; page < PAGES && left-- > 0; page++) await way(nth);
      });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, some));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / REQUESTS;
}

function median(values: number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)]!;
}
