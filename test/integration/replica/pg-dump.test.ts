/** A dump that runs while tables are built, swapped, renamed and dropped: complete, of one moment, and restored as it is. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { expect, test } from "vitest";
import {
  changeShape,
  claimEpoch,
  installReplica,
  loadCatalog,
  openReplica,
  planSchema,
  type Replica,
  startBuild,
} from "../../../core/replica";
import type { FieldType, SourceTable } from "../../../core/source";
import { scratchFolder } from "../../support/scratch";
import { PASSWORD, postgresServer } from "../../support/servers/postgres-server";

/** Debian's client, of 15, dumps a server of 15; the embedded servers come without it. */
const HAS_CLIENT = Bun.which("pg_dump") !== null && Bun.which("psql") !== null;
const SETTINGS = { linkedRecordsAsText: false, lookupsAsText: false };
const ROWS = 1500;
const DUMPS = 12;

async function run(command: string[]): Promise<void> {
  const child = Bun.spawn(command, {
    env: { ...process.env, PGPASSWORD: PASSWORD },
    stdout: "ignore",
    stderr: "pipe",
  });
  const said = await new Response(child.stderr).text();
  if ((await child.exited) !== 0) throw new Error(`${command[0]}: ${said}`);
}

const source = (version: number): SourceTable[] =>
  ["A", "B"].map((letter) => {
    const type: FieldType = version % 2 === 0 ? "number" : "text";
    const fields = [
      { id: "fldV", name: "Version", type, sourceType: type },
      ...(version % 3 === 0
        ? [{ id: "fldX", name: "Extra", type: "text" as const, sourceType: "text" }]
        : []),
    ];
    return {
      id: `tbl${letter}`,
      name: `${letter} ${version % 5 === 0 ? "renamed" : "table"}`,
      primaryFieldId: "fldV",
      fields,
    };
  });

/** Brings both tables to a version, each row of it the same. */
async function bring(replica: Replica, epoch: number, version: number, isOver: () => boolean): Promise<void> {
  const busy = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
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
  const plan = async () => planSchema(await loadCatalog(replica), { tables: source(version) }, SETTINGS);
  await busy(async () => changeShape(replica, epoch, await loadCatalog(replica), await plan()));
  for (const spec of (await plan()).rebuild) {
    const build = await busy(() => startBuild(replica, epoch, spec));
    for (let from = 0; build && from < ROWS; from += 300) {
      const ids = Array.from({ length: 300 }, (_, index) => `rec${from + index}`);
      const cells = Object.fromEntries(
        spec.columns.map(({ name }) => [name, name === "version" ? version : "x"]),
      );
      await build.append(ids.map((id) => ({ id, created_time: "2024-05-01T12:34:56", ...cells })));
    }
    await busy(async () =>
      build!.swapIn((await loadCatalog(replica)).get(spec.tableId), Number.MAX_SAFE_INTEGER, []),
    );
  }
}

test.skipIf(!HAS_CLIENT)(
  `dumps during syncs and swaps succeed, and restore to whole tables${HAS_CLIENT ? "" : " (no pg_dump here)"}`,
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
    let isOver = false;
    let swaps = 0;
    try {
      const epoch = await claimEpoch(replica);
      await bring(replica, epoch, 1, () => false);
      const syncing = (async () => {
        for (let version = 2; !isOver; version++) {
          await bring(replica, epoch, version, () => isOver);
          swaps++;
        }
      })();
      syncing.catch(() => {});
      // In the moment of a commit a dump may still find a table that is gone: it says so, and is run again.
      let repeated = 0;
      const dump = async (file: string): Promise<void> => {
        try {
          await run(["pg_dump", "--dbname", url, "--file", file]);
        } catch (error) {
          if (++repeated > DUMPS || !/relation .* does not exist/.test(String(error))) throw error;
          await dump(file);
        }
      };
      for (let nth = 0; nth < DUMPS; nth++) {
        const file = join(folder, `${nth}.sql`);
        const before = swaps;
        await dump(file);
        // The next one is of another version.
        while (swaps === before && !isOver) await Promise.race([Bun.sleep(20), syncing]);
      }
      isOver = true;
      await syncing;
      expect(repeated).toBeLessThan(DUMPS);
      for (let nth = 0; nth < DUMPS; nth++) {
        const restored = `restored_${nth}`;
        await server.run([`create database ${restored}`]);
        const there = server.as("postgres", restored);
        await run([
          "psql",
          "--quiet",
          "-v",
          "ON_ERROR_STOP=1",
          "--dbname",
          there,
          "--file",
          join(folder, `${nth}.sql`),
        ]);
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
      // Basetide goes on from it.
      const there = server.as("postgres", "restored_0");
      await installReplica(there, { schema: "airtable", role: "postgres" });
      const again = openReplica({ url: there, schema: "airtable" });
      try {
        await bring(again, await claimEpoch(again), 100, () => false);
      } finally {
        await again.close();
      }
    } finally {
      isOver = true;
      await sql.end();
      await replica.close();
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
