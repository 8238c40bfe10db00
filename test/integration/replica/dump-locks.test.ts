/**
 * A parallel pg_dump: its leader locks all tables, and its workers lock each table again, without waiting. They fail if
 * only a request for an exclusive lock is there, so a change of a table makes none while a dump is connected.
 */
import postgres from "postgres";
import { expect, onTestFinished, test, vi } from "vitest";
import { loadCatalog, mergeBuild, planSchema, startBuild } from "../../../core/replica";
import type { FieldType } from "../../../core/source";
import { until } from "../../support/poll";
import { putBuild } from "../../support/put-build";
import { type TestReplica, testReplica } from "../../support/replica";
import { sourceTable } from "../../support/source-records";

vi.setConfig({ testTimeout: 60_000 });

const SETTINGS = { linkedRecordsAsText: false, lookupsAsText: false };
const OPTIONS = { seen: Number.MAX_SAFE_INTEGER, issues: [], most: null, compared: null };

function dumping({ ownerUrl }: TestReplica) {
  const sql = postgres(ownerUrl, { max: 1, onnotice: () => {}, connection: { application_name: "pg_dump" } });
  onTestFinished(() => sql.end({ timeout: 1 }));
  return sql;
}

async function replicaOf(): Promise<TestReplica> {
  const made = await testReplica();
  onTestFinished(() => made[Symbol.asyncDispose]());
  return made;
}

async function built({ replica, epoch }: TestReplica, fields: Record<string, FieldType>) {
  const catalog = await loadCatalog(replica);
  const tables = [sourceTable("tblO", "Orders", fields)];
  const build = await startBuild(replica, epoch, planSchema(catalog, { tables }, SETTINGS).rebuild[0]!);
  const cells = Object.fromEntries(Object.keys(fields).map((name) => [name.toLowerCase(), "x"]));
  await build.append([{ id: "rec1", created_time: "2024-05-01T12:34:56", ...cells }]);
  return { build, live: catalog.get("tblO") };
}

/** Locks the table as a leader does, and as a worker does until `isOver`. @returns how often a worker would have failed */
async function dump(
  made: TestReplica,
  table: string,
  begun: () => Promise<void>,
  isOver: () => boolean,
): Promise<number> {
  const leader = dumping(made);
  const worker = dumping(made);
  await worker`select`;
  let failures = 0;
  await leader.begin("isolation level repeatable read, read only", async (tx) => {
    await tx.unsafe(`lock table ${table} in access share mode`);
    await begun();
    await until(
      async () => {
        await worker
          .begin((one) => one.unsafe(`lock table ${table} in access share mode nowait`))
          .catch(() => failures++);
        return isOver();
      },
      { what: "the change gives up", intervalMs: 1 },
    );
  });
  await Promise.all([leader.end(), worker.end()]);
  return failures;
}

test("a dump that connects while a merge writes rows is not delayed, and the merge follows it", async () => {
  const made = await replicaOf();
  const { replica, epoch, ownerUrl } = made;
  const first = await built(made, { Name: "text" });
  await putBuild(made, first.build, undefined);
  // Rows that are written wait as long as the gate is there.
  const sql = postgres(ownerUrl, { max: 1, onnotice: () => {} });
  onTestFinished(() => sql.end({ timeout: 1 }));
  await sql.unsafe(`update public.orders set name = 'old';
    create table public.gate as select 1 as closed;
    create function public.wait() returns trigger language plpgsql as $$
    begin
      while exists (select from public.gate) loop
        perform pg_sleep(0.01);
      end loop;
      return new;
    end $$;
    create trigger wait before update on public.orders for each row execute function public.wait()`);
  const { build, live } = await built(made, { Name: "text", More: "text" });
  let failed: { code?: string } | undefined;
  const merging = mergeBuild(replica, epoch, build, live, OPTIONS).catch((error: { code?: string }) => {
    failed = error;
  });
  await until(
    async () =>
      (await sql`select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`)
        .length > 0,
    { what: "the merge writes rows" },
  );
  const failures = await dump(
    made,
    "public.orders",
    async () => void (await sql`delete from public.gate`),
    () => failed !== undefined,
  );
  await merging;
  expect(failed?.code).toBe("replica_busy");
  expect(failures).toBe(0);
  expect((await mergeBuild(replica, epoch, build, live, OPTIONS)).merging).toBe("merged");
  expect(await sql`select name, more from public.orders`).toEqual([{ name: "x", more: "x" }]);
});

test("a table that is being built does not go live while a dump holds it, and its dump is not delayed", async () => {
  const made = await replicaOf();
  const { build } = await built(made, { Name: "text" });
  let failed: { code?: string } | undefined;
  const failures = await dump(
    made,
    'public_swap."tblO"',
    async () => {
      void putBuild(made, build, undefined).catch((error: { code?: string }) => {
        failed = error;
      });
    },
    () => failed !== undefined,
  );
  expect(failed?.code).toBe("replica_busy");
  expect(failures).toBe(0);
  expect(await putBuild(made, build, undefined)).toBe(true);
});
