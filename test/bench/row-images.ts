/**
 * Measures what it costs the replica's server to apply the row image of one record, against a bare upsert of the same
 * row from JSON: on one base again and again, and on many in turn, whose caches are then cold. CPU is that of the
 * sessions alone.
 *
 * Run: `bun run bench row-images`, with ROW_IMAGE_BASES (30), ROW_IMAGE_FIELDS (15) and ROW_IMAGE_ROUNDS (40).
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { startEmbeddedPostgres } from "../../apps/up/postgres/embedded-postgres";
import { createLogger } from "../../core/log";
import {
  applyRowImages,
  type CatalogTable,
  claimEpoch,
  compileMapper,
  databaseUrl,
  installReplica,
  loadCatalog,
  openReplica,
  provisionDatabase,
  type RecordMapper,
  type Replica,
} from "../../core/replica";
import type { SourceRecord } from "../../core/source";
import { syncBase } from "../../core/sync/engine";
import { BaseCache } from "../../core/sync/state";
import { engineInput } from "../support/engine-input";
import { FakeSource } from "../support/fake-source";
import { exactCpuSeconds } from "../support/process-usage";
import { largeTable, pagesOf } from "./large-table";
import { ratio, table } from "./print";

const BASES = Number(process.env.ROW_IMAGE_BASES ?? 30);
const FIELDS = Number(process.env.ROW_IMAGE_FIELDS ?? 15);
const ROUNDS = Number(process.env.ROW_IMAGE_ROUNDS ?? 40);
const RECORDS = 1000;
/** Not measured: a statement is planned once per connection. */
const WARM_ROUNDS = 10;
const LIMIT = 2.5;
/** By then, the pools know how many connections the server allows. */
const LIMIT_KNOWN_MS = 2000;

interface Base {
  replica: Replica;
  live: CatalogTable;
  map: RecordMapper;
  epoch: number;
  pid: number;
  floor: postgres.Sql;
  floorPid: number;
}

/** The bare upsert's table. */
const FLOOR = "public.floor";

const records = (JSON.parse(`${pagesOf(RECORDS, FIELDS)(0)}`) as { records: SourceRecord[] }).records;

/** A record with other cells each time. */
function edited(round: number): SourceRecord {
  const record = records[round % records.length]!;
  return { ...record, fields: { ...record.fields, fld0: `Edit ${round}`, fld1: round } };
}

type Work = (base: Base, round: number) => Promise<unknown>;

const apply =
  (isOfLease: boolean): Work =>
  async ({ replica, live, map, epoch }, round) => {
    const record = edited(round);
    const image = { rows: [map(record, [])], gone: [], issues: [], records: [record] };
    const applied = await applyRowImages(replica, live, {
      epoch: isOfLease ? epoch : null,
      // No image is newer.
      readVersion: Number.MAX_SAFE_INTEGER,
      ...image,
    });
    if (applied.updated !== 1) throw new Error(`applied ${JSON.stringify(applied)}`);
  };

const works: Record<string, Work> = {
  "select 1": ({ floor }) => floor`select 1`,
  "bare upsert": ({ floor, live, map }, round) =>
    floor.unsafe(upsert(live), [JSON.stringify([map(edited(round), [])])], { prepare: true }),
  "proxied write": apply(false),
  "live edit": apply(true),
};

export async function run(): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "basetide-row-images-"));
  releases.defer(() => rmSync(folder, { recursive: true, force: true }));
  const server = await startEmbeddedPostgres({
    dataDir: join(folder, "postgres"),
    port: 0,
    log: createLogger("fatal", "bench"),
    settings: { autovacuum: "off" },
  });
  releases.defer(() => server.stop());
  const bases = await openBases(server.url, releases);
  const rows: string[][] = [];
  let isWithin = true;
  // First: an idle connection is closed after some seconds.
  const all = await costsOf(bases);
  const one = await costsOf(bases.slice(0, 1));
  for (const name of Object.keys(works)) {
    const cell = (costs: Record<string, number>) => {
      const against = costs[name]! / costs["bare upsert"]!;
      const isLimited = name === "proxied write" || name === "live edit";
      const text = isLimited ? ratio(against, LIMIT) : { text: against.toFixed(2), isWithin: true };
      isWithin &&= text.isWithin;
      return `${costs[name]!.toFixed(0)} µs, ${text.text}`;
    };
    rows.push([name, cell(one), cell(all)]);
  }
  table([`CPU of the server, ${FIELDS} fields`, "one base", `${BASES} bases in turn`], rows);
  return isWithin;
}

/** The median of each work's cost in one session, µs. */
async function costsOf(bases: Base[]): Promise<Record<string, number>> {
  const costs: Record<string, number[]> = Object.fromEntries(Object.keys(works).map((name) => [name, []]));
  // As many calls per round whatever the number of bases: the unit of the clock is a tick of the scheduler.
  const calls = Math.ceil(BASES / bases.length);
  for (let round = -WARM_ROUNDS; round < ROUNDS; round++) {
    for (const [name, work] of Object.entries(works)) {
      const from = cpuOf(bases);
      for (let call = 0; call < calls; call++) for (const base of bases) await work(base, nextEdit++);
      if (round >= 0) costs[name]!.push((1e6 * (cpuOf(bases) - from)) / calls / bases.length);
    }
  }
  return Object.fromEntries(
    Object.entries(costs).map(([name, all]) => [name, all.toSorted((a, b) => a - b)[all.length >> 1]!]),
  );
}

let nextEdit = 0;

function cpuOf(bases: Base[]): number {
  return bases.reduce((sum, { pid, floorPid }) => sum + exactCpuSeconds(pid) + exactCpuSeconds(floorPid), 0);
}

/** Copies of a database whose base has been synced, with a second table for the bare upsert. */
async function openBases(serverUrl: string, releases: AsyncDisposableStack): Promise<Base[]> {
  const { database, role } = await provisionDatabase(serverUrl);
  const url = databaseUrl(serverUrl, database);
  await installReplica(url, { schema: "public", role });
  const first = openReplica({ url, schema: "public" });
  const source = new FakeSource();
  const of = largeTable(FIELDS);
  source.add(
    of,
    Array.from({ length: RECORDS / records.length }, (_, page) => pagesOf(RECORDS, FIELDS)(page)).flatMap(
      (page) => (JSON.parse(`${page}`) as { records: SourceRecord[] }).records,
    ),
  );
  const epoch = await claimEpoch(first);
  const { error } = await syncBase(
    engineInput({ replica: first, epoch, cache: new BaseCache(epoch, 300), connection: source.connection() }),
  );
  if (error) throw error;
  const live = (await loadCatalog(first)).get(of.id)!;
  await first.sql.unsafe(`create table ${FLOOR} (like public."${live.spec.name}" including all)`);
  await first.sql.unsafe(`insert into ${FLOOR} select * from public."${live.spec.name}"`);
  await first.sql.unsafe(`analyze`);
  await first.close();
  const admin = postgres(serverUrl, { max: 1, onnotice: () => {} });
  releases.defer(() => admin.end({ timeout: 1 }));
  const names = Array.from({ length: BASES }, (_, index) => `row_images_${index}`);
  for (const name of names)
    await admin.unsafe(`create database ${name} template "${database}" strategy file_copy`);
  const bases: Base[] = [];
  for (const [index, name] of names.entries()) {
    const replica = openReplica({ url: databaseUrl(serverUrl, name), schema: "public" });
    releases.defer(() => replica.close());
    const floor = postgres(databaseUrl(serverUrl, name), { max: 1, onnotice: () => {} });
    releases.defer(() => floor.end({ timeout: 1 }));
    const pid = await pidOf(replica.sql);
    if (index === 0) await Bun.sleep(LIMIT_KNOWN_MS);
    const claimed = await claimEpoch(replica);
    const map = compileMapper(live.spec);
    bases.push({ replica, live, map, epoch: claimed, pid, floor, floorPid: await pidOf(floor) });
  }
  return bases;
}

async function pidOf(sql: postgres.Sql | Replica["sql"]): Promise<number> {
  const [row] = await (sql as postgres.Sql)<{ pid: number }[]>`select pg_backend_pid() as pid`;
  return row!.pid;
}

function upsert({ spec }: CatalogTable): string {
  const columns = [
    ["id", "text"],
    ["created_time", "timestamp"],
    ...spec.columns.map(({ name, columnType }) => [`"${name}"`, columnType]),
  ];
  const names = columns.map(([name]) => name);
  return `insert into ${FLOOR} (${names.join(", ")})
    select * from json_to_recordset($1::text::json) as r (${columns.map((column) => column.join(" ")).join(", ")})
    on conflict (id) do update set ${names
      .slice(1)
      .map((name) => `${name} = excluded.${name}`)
      .join(", ")}`;
}
