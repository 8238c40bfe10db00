/**
 * Measures the memory of a worker: bytes per record and per base of what it caches, of a real worker with live bases,
 * and what an eviction of fingerprints costs.
 *
 * Run: `bun run bench memory`, with MEMORY_CACHES (300), MEMORY_RECORDS (10000, of each of those), MEMORY_BASES (20, on
 * a real worker, and then twice as many; 0: none) and MEMORY_SECONDS (60, before its memory is read).
 */
import { heapStats } from "bun:jsc";
import {
  applyRowImages,
  claimEpoch,
  databaseUrl,
  dropDatabase,
  installReplica,
  loadCatalog,
  mapRecords,
  openReplica,
  planSchema,
  provisionDatabase,
  takeReadVersion,
} from "../../core/replica";
import type { SourceSchema } from "../../core/source";
import { readPage } from "../../core/source/airtable/page";
import { syncBase } from "../../core/sync/engine";
import { BaseCache, tableCache } from "../../core/sync/state";
import { engineInput } from "../support/engine-input";
import { FakeSource } from "../support/fake-source";
import { startLiveFleet } from "../support/live-fleet";
import { until } from "../support/poll";
import { cpuSeconds, parentOf, residentBytes } from "../support/process-usage";
import { proveAddress } from "../support/prove-address";
import { startTestServer } from "../support/server";
import { startWorkerProcess } from "../support/worker-process";
import { largeTable, pagesOf } from "./large-table";
import { ratio, table } from "./print";

const CACHES = Number(process.env.MEMORY_CACHES ?? 300);
const RECORDS = Number(process.env.MEMORY_RECORDS ?? 10_000);
const BASES = Number(process.env.MEMORY_BASES ?? 20);
const SECONDS = Number(process.env.MEMORY_SECONDS ?? 60);
const RECORD_LIMIT_BYTES = 16;
const REST_LIMIT_BYTES = 200_000;
/** A thousand bases of 10,000 records. */
const FLEET_LIMIT_BYTES = 700 * 2 ** 20;
const FLEET = { bases: 1000, records: 10_000 };
const KB = 1024;
const MB = 2 ** 20;
const PAGES = 200;
const FIELDS = 20;

export async function run(): Promise<boolean> {
  const shapes = [
    { tables: 5, fields: 20 },
    { tables: 20, fields: 50 },
  ].map(cacheBytes);
  console.log(`\nCaches of ${CACHES} bases:`);
  table(
    ["tables x fields", "schema and mapping", "a field", `fingerprints of ${RECORDS} records`, "a record"],
    shapes.map((one) => [
      `${one.tables} x ${one.fields}`,
      `${(one.schemaBytes / KB).toFixed(0)} kB`,
      `${(one.schemaBytes / one.tables / one.fields).toFixed(0)} B`,
      `${(one.fingerprintBytes / KB).toFixed(0)} kB`,
      `${(one.fingerprintBytes / RECORDS).toFixed(1)} B`,
    ]),
  );
  const perRecord = ratio(
    Math.max(...shapes.map(({ fingerprintBytes }) => fingerprintBytes)) / RECORDS / RECORD_LIMIT_BYTES,
    1,
  );
  await using releases = new AsyncDisposableStack();
  const server = await startTestServer();
  releases.defer(() => server.stop());
  await evictionCost(server.url);
  if (BASES === 0) return perRecord.isWithin;
  const worker = await workerBytes(server.url);
  const fingerprints = FLEET.records * RECORD_LIMIT_BYTES;
  const fleet = worker.emptyBytes + FLEET.bases * (worker.perBaseBytes + fingerprints);
  const rest = ratio(worker.perBaseBytes / REST_LIMIT_BYTES, 1);
  const all = ratio(fleet / FLEET_LIMIT_BYTES, 1);
  console.log(
    `worker: ${(worker.emptyBytes / MB).toFixed(0)} MB, and ${(worker.perBaseBytes / KB).toFixed(0)} kB a live base at rest, ${rest.text} of 200 kB`,
  );
  console.log(
    `${FLEET.bases} bases of ${FLEET.records} records: ${(fleet / MB).toFixed(0)} MB, ${all.text} of 700 MB`,
  );
  return perRecord.isWithin && rest.isWithin && all.isWithin;
}

/** The heap's growth by the caches of CACHES bases, and the bytes of their fingerprints, each per base. */
function cacheBytes({ tables, fields }: { tables: number; fields: number }) {
  const caches: BaseCache[] = [];
  const heap = () => {
    Bun.gc(true);
    return heapStats().heapSize;
  };
  const before = heap();
  for (let base = 0; base < CACHES; base++) {
    const cache = new BaseCache(1);
    cache.schema = JSON.parse(JSON.stringify(schemaOf(base, tables, fields))) as SourceSchema;
    const { rebuild } = planSchema(new Map(), cache.schema, {
      linkedRecordsAsText: false,
      lookupsAsText: false,
    });
    for (const spec of rebuild) tableCache(cache, { spec: structuredClone(spec), shape: 1 });
    caches.push(cache);
  }
  const schemaBytes = (heap() - before) / CACHES;
  for (const { tables: all } of caches) {
    for (const { fingerprints } of all.values()) {
      for (let record = 0; record < RECORDS / all.size; record++) {
        fingerprints.learn(`rec${record}`, BigInt(record + 1));
      }
    }
  }
  const fingerprintBytes =
    caches.reduce(
      (sum, cache) =>
        sum + [...cache.tables.values()].reduce((one, { fingerprints }) => one + fingerprints.bytes, 0),
      0,
    ) / CACHES;
  return { tables, fields, schemaBytes, fingerprintBytes };
}

function schemaOf(base: number, tables: number, fields: number): SourceSchema {
  return {
    tables: Array.from({ length: tables }, (_, index) => {
      const made = largeTable(fields);
      return {
        ...made,
        id: `tbl${base}x${index}`,
        name: `Table ${index} of base ${base}`,
        fields: made.fields.map((field) => ({
          ...field,
          id: `${field.id}x${base}x${index}`,
          name: `${field.name} of ${base}`,
          ...(field.type === "links" && { linkedTableId: `tbl${base}x0` }),
        })),
      };
    }),
  };
}

/** Sweeps pages of unchanged records with fingerprints, and without, as after an eviction. */
async function evictionCost(adminUrl: string): Promise<void> {
  await using releases = new AsyncDisposableStack();
  const { database, role } = await provisionDatabase(adminUrl);
  releases.defer(() => dropDatabase(adminUrl, database, role));
  const url = databaseUrl(adminUrl, database);
  await installReplica(url, { schema: "public", role });
  const replica = openReplica({ url, schema: "public" });
  releases.defer(() => replica.close());
  const [backend] = await replica.sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
  const serverPid = parentOf(backend!.pid);
  const epoch = await claimEpoch(replica);
  const cache = new BaseCache(epoch);
  const source = new FakeSource();
  const large = largeTable(FIELDS);
  source.add(large, []);
  await syncBase(engineInput({ replica, epoch, cache, connection: source.connection() }));
  const live = (await loadCatalog(replica)).get(large.id)!;
  const known = tableCache(cache, live);
  const pageOf = pagesOf(PAGES * 100, FIELDS);
  const sweep = async (isEvicted: boolean) => {
    const readVersion = await takeReadVersion(replica);
    const from = [process.cpuUsage(), cpuSeconds(serverPid)] as const;
    for (let nth = 0; nth < PAGES; nth++) {
      const page = readPage(pageOf(nth), large);
      const changed: number[] = [];
      for (let index = 0; index < page.size; index++) {
        if (!known.fingerprints.see(page.id(index), page.fingerprint(index)) || isEvicted)
          changed.push(index);
        known.fingerprints.learn(page.id(index), page.fingerprint(index));
      }
      if (changed.length === 0) continue;
      const rows = mapRecords(
        known.map,
        changed.map((index) => page.record(index)),
        [],
      );
      await applyRowImages(replica, live, { epoch, readVersion, rows, gone: [], issues: [] });
    }
    const { user, system } = process.cpuUsage(from[0]);
    return { worker: (user + system) / PAGES, server: (1e6 * (cpuSeconds(serverPid) - from[1])) / PAGES };
  };
  await sweep(true);
  const evicted = await sweep(true);
  const warm = await sweep(false);
  console.log(`\nA page of 100 unchanged records with ${FIELDS} fields, without its request:`);
  const row = (name: string, { worker, server }: typeof warm) => [
    name,
    `${worker.toFixed(0)} µs`,
    `${server.toFixed(0)} µs`,
  ];
  table(
    ["", "CPU of the worker", "CPU of the replica"],
    [row("with fingerprints", warm), row("evicted", evicted)],
  );
}

/** Resident memory of a worker without bases, and its growth per live base at rest. */
async function workerBytes(databaseUrl: string): Promise<{ emptyBytes: number; perBaseBytes: number }> {
  await using releases = new AsyncDisposableStack();
  const env = { WORKER_CONCURRENCY: "1000", ACCOUNT_DATABASES: "100000" };
  const fleet = releases.use(
    await startLiveFleet({ databaseUrl, workers: 0, env: { ...env, REPLICA_URL: databaseUrl } }),
  );
  const worker = releases.use(await startWorkerProcess(fleet, env));
  const { db } = fleet.ctx;
  const addBases = async () => {
    for (let seed = 0; seed < BASES; seed++) {
      const sourceBaseId = fleet.sandbox.control.generate({ records: 500, tables: 2, seed });
      const { id } = await fleet.connect(sourceBaseId, { live: true, turbo: true });
      await until(
        async () => (await db`select from live_feeds where base_id = ${id} and state = 'on'`).length > 0,
        {
          what: `${id} is live`,
          timeoutMs: 120_000,
        },
      );
    }
  };
  const settled = async () => {
    await Bun.sleep(SECONDS * 1000);
    return residentBytes(worker.pid);
  };
  await proveAddress(fleet.ctx);
  await addBases();
  const some = await settled();
  await addBases();
  const more = await settled();
  const perBaseBytes = (more - some) / BASES;
  return { emptyBytes: some - BASES * perBaseBytes, perBaseBytes };
}
