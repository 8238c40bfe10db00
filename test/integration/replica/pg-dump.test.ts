/** A dump that runs while tables are built, swapped, merged and renamed: complete, consistent, and restorable. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { expect, test } from "vitest";
import {
  changeShape,
  claimEpoch,
  fillColumns,
  installReplica,
  loadCatalog,
  mergeBuild,
  openReplica,
  planSchema,
  type Replica,
  startBuild,
  type TableSpec,
} from "../../../core/replica";
import type { FieldType, SourceTable } from "../../../core/source";
import { putBuild } from "../../support/put-build";
import { scratchFolder } from "../../support/scratch";
import { PASSWORD, postgresServer } from "../../support/servers/postgres-server";

/** Debian's client, version 15, dumps a server of 15; the embedded servers have none. */
const HAS_CLIENT = Bun.which("pg_dump") !== null && Bun.which("psql") !== null;
const SETTINGS = { linkedRecordsAsText: false, lookupsAsText: false };
const ROWS = 1500;
const DUMPS = 12;
/** A dump that connects while a change commits may still find a dropped table: it reports that, and is run again. */
const MOST_REPEATED = 3;
const BATCH = 300;

async function run(command: string[]): Promise<void> {
  const child = Bun.spawn(command, {
    env: { ...process.env, PGPASSWORD: PASSWORD },
    stdout: "ignore",
    stderr: "pipe",
  });
  const said = await new Response(child.stderr).text();
  if ((await child.exited) !== 0) throw new Error(`${command[0]}: ${said}`);
}

/**
 * Of every four versions one changes a type, one adds a field, one is compared with the existing rows, and one drops
 * the field.
 */
const source = (version: number): SourceTable[] =>
  ["A", "B"].map((letter) => {
    const type: FieldType = version % 8 < 4 ? "number" : "text";
    const hasExtra = version % 4 === 1 || version % 4 === 2;
    return {
      id: `tbl${letter}`,
      name: `${letter} ${version % 5 === 0 ? "renamed" : "table"}`,
      primaryFieldId: "fldV",
      fields: [
        { id: "fldV", name: "Version", type, sourceType: type },
        ...(hasExtra ? [{ id: "fldX", name: "Extra", type: "text" as const, sourceType: "text" }] : []),
      ],
    };
  });

type Busy = <T>(work: () => Promise<T>) => Promise<T | undefined>;

/** Tries again as long as queries lock the table. */
const whileBusy =
  (isOver: () => boolean): Busy =>
  async (work) => {
    for (;;) {
      if (isOver()) return undefined;
      try {
        return await work();
      } catch (error) {
        if ((error as { code?: string }).code !== "replica_busy") throw error;
        await Bun.sleep(5);
      }
    }
  };

/** Applies a version to both tables, each row the same. @returns false if it ended before */
async function bring(
  replica: Replica,
  epoch: number,
  version: number,
  isOver: () => boolean,
): Promise<boolean> {
  const busy = whileBusy(isOver);
  const plan = async () => planSchema(await loadCatalog(replica), { tables: source(version) }, SETTINGS);
  await busy(async () => changeShape(replica, epoch, await loadCatalog(replica), await plan()));
  const { rebuild } = await plan();
  const catalog = await loadCatalog(replica);
  for (const spec of rebuild.length > 0 ? rebuild : [...catalog.values()].map((live) => live.spec)) {
    const build = await filledBuild(replica, epoch, spec, version, busy);
    if (!build) return false;
    const live = catalog.get(spec.tableId);
    if (live && version % 4 !== 0 && version % 4 !== 3) {
      const options = { seen: Number.MAX_SAFE_INTEGER, issues: [], compared: null };
      // Every other one fills its column in advance.
      const most = version % 8 < 4 ? null : 100;
      let merging = await busy(() => mergeBuild(replica, epoch, build, live, { ...options, most }));
      if (merging?.merging === "large") {
        await busy(() => fillColumns(replica, epoch, build, live));
        merging = await busy(() => mergeBuild(replica, epoch, build, live, { ...options, most: null }));
      }
      if (!isOver()) expect(merging?.merging).toBe("merged");
      await busy(() => build.discard());
    } else {
      await busy(async () =>
        putBuild({ replica, epoch }, build, (await loadCatalog(replica)).get(spec.tableId)),
      );
    }
  }
  return !isOver();
}

async function filledBuild(replica: Replica, epoch: number, spec: TableSpec, version: number, busy: Busy) {
  const build = await busy(() => startBuild(replica, epoch, spec));
  for (let from = 0; build && from < ROWS; from += BATCH) {
    await build.append(
      Array.from({ length: BATCH }, (_, index) => {
        const id = `rec${from + index}`;
        const cells = spec.columns.map(({ name }) => [name, name === "version" ? version : `x ${id}`]);
        return { id, created_time: "2024-05-01T12:34:56", ...Object.fromEntries(cells) };
      }),
    );
  }
  return build;
}

/** Changes both tables until it is disposed, and calls `dump` once for every version or later. */
async function dumpAll(replica: Replica, dump: (nth: number) => Promise<void>): Promise<number> {
  let isOver = false;
  let version = 3;
  let repeated = 0;
  const epoch = await claimEpoch(replica);
  await bring(replica, epoch, version, () => false);
  const changing = (async () => {
    while (await bring(replica, epoch, version + 1, () => isOver)) version++;
  })();
  changing.catch(() => {});
  try {
    for (let nth = 0; nth < DUMPS; nth++) {
      const before = version;
      for (let isDone = false; !isDone; ) {
        try {
          await dump(nth);
          isDone = true;
        } catch (error) {
          if (++repeated > DUMPS || !/relation .* does not exist/.test(String(error))) throw error;
          console.info(`dump ${nth} at version ${version}: ${String(error)}`);
        }
      }
      while (version === before) await Promise.race([Bun.sleep(20), changing]);
    }
  } finally {
    isOver = true;
    await changing;
  }
  return repeated;
}

test.skipIf(!HAS_CLIENT)(
  `dumps during swaps and merges succeed, and restore to whole tables${HAS_CLIENT ? "" : " (no pg_dump here)"}`,
  { timeout: 240_000 },
  async () => {
    await using server = await postgresServer({ version: "15" });
    await server.run(["create database base"]);
    const url = server.as("postgres", "base");
    await installReplica(url, { schema: "airtable", role: "postgres" });
    const replica = openReplica({ url, schema: "airtable" });
    const sql = postgres(url, { max: 1, onnotice: () => {} });
    // The client locks them one by one, after its snapshot.
    await sql.unsafe(
      Array.from({ length: 150 }, (_, nth) => `create table public.other_${nth} ();`).join(""),
    );
    const folder = scratchFolder("dumps");
    const fileOf = (nth: number) => join(folder, `${nth}`);
    // The workers of a parallel dump lock each table for themselves.
    const isParallel = (nth: number) => nth % 3 === 2;
    try {
      const repeated = await dumpAll(replica, async (nth) => {
        rmSync(fileOf(nth), { recursive: true, force: true });
        const form = isParallel(nth) ? ["--format=directory", "--jobs=2"] : [];
        await run(["pg_dump", "--dbname", url, ...form, "--file", fileOf(nth)]);
      });
      expect(repeated).toBeLessThanOrEqual(MOST_REPEATED);
      for (let nth = 0; nth < DUMPS; nth++) {
        const restored = `restored_${nth}`;
        await server.run([`create database ${restored}`]);
        const there = server.as("postgres", restored);
        await run(
          isParallel(nth)
            ? ["pg_restore", "--exit-on-error", "--dbname", there, fileOf(nth)]
            : ["psql", "--quiet", "-v", "ON_ERROR_STOP=1", "--dbname", there, "--file", fileOf(nth)],
        );
        const copy = postgres(there, { max: 1, onnotice: () => {} });
        try {
          const tables = await copy<{ name: string }[]>`select name from airtable_swap._tables`;
          expect(tables).toHaveLength(2);
          for (const { name } of tables) {
            const [found] = await copy`
            select count(*)::int as rows, count(distinct version::text)::int as versions from airtable.${copy(name)}`;
            expect([nth, name, found]).toEqual([nth, name, { rows: ROWS, versions: 1 }]);
          }
        } finally {
          await copy.end();
        }
      }
      // Basetide continues from it.
      const there = server.as("postgres", "restored_0");
      await installReplica(there, { schema: "airtable", role: "postgres" });
      const again = openReplica({ url: there, schema: "airtable" });
      try {
        await bring(again, await claimEpoch(again), 100, () => false);
      } finally {
        await again.close();
      }
    } finally {
      await sql.end();
      await replica.close();
      rmSync(folder, { recursive: true, force: true });
    }
  },
);

/** What pg_dump does since version 16, which locks all tables at once. @returns [rows, versions] of each table */
async function dumpAtOnce(url: string): Promise<[number, number][]> {
  const sql = postgres(url, {
    max: 1,
    onnotice: () => {},
    connection: { application_name: "pg_dump", search_path: "" },
  });
  try {
    for (const setting of ["datestyle = iso", "intervalstyle = postgres", "extra_float_digits = 3"]) {
      await sql.unsafe(`set ${setting}`);
    }
    return await sql.begin("isolation level repeatable read, read only", async (tx) => {
      await tx`select oid, rolname from pg_catalog.pg_roles`;
      await tx`select oid, nspname from pg_catalog.pg_namespace`;
      const tables = await tx<{ oid: number; table: string; columns: string[] }[]>`
        select c.oid, format('%I.%I', n.nspname, c.relname) as table
        from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
        where c.relkind = 'r' and n.nspname in ('airtable', 'airtable_swap')`;
      await tx.unsafe(`lock table ${tables.map(({ table }) => table).join(", ")} in access share mode`);
      for (const one of tables) {
        one.columns = (
          await tx<{ name: string }[]>`
          select quote_ident(attname) as name from pg_catalog.pg_attribute
          where attrelid = ${one.oid} and attnum > 0 and not attisdropped order by attnum`
        ).map(({ name }) => name);
      }
      const found: [number, number][] = [];
      for (const { table, columns } of tables) {
        const rows = await tx.unsafe(`select ${columns.join(", ")} from ${table}`);
        if (!table.startsWith("airtable.") || !columns.includes("version")) continue;
        found.push([rows.length, new Set(rows.map((row) => String(row.version))).size]);
      }
      return found;
    });
  } finally {
    await sql.end();
  }
}

test("a dump that locks all tables at once finds complete tables, too", { timeout: 240_000 }, async () => {
  await using server = await postgresServer({ version: "18" });
  await server.run(["create database base"]);
  const url = server.as("postgres", "base");
  await installReplica(url, { schema: "airtable", role: "postgres" });
  const replica = openReplica({ url, schema: "airtable" });
  try {
    const repeated = await dumpAll(replica, async () => {
      expect(await dumpAtOnce(url)).toEqual([
        [ROWS, 1],
        [ROWS, 1],
      ]);
    });
    expect(repeated).toBeLessThanOrEqual(MOST_REPEATED);
  } finally {
    await replica.close();
  }
});
