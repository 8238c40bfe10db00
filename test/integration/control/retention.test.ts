/** Every table of the control plane has a rule for how long its rows are kept, and housekeeping follows it. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Db } from "../../../core/context";
import { retention, trimTables } from "../../../core/control/retention/retention";
import { openQueue } from "../../../core/queue";
import { type TestControl, testControl } from "../../support/control-support";

let control: TestControl;

beforeAll(async () => {
  control = await testControl();
});
afterAll(() => control?.[Symbol.asyncDispose]());

test("every table has a rule, and every rule has a table", async () => {
  const { ctx } = control;
  const queue = await openQueue(ctx, ctx.config.databaseUrl!, { isWorker: true });
  await queue.close();
  const rows = await ctx.db<{ name: string }[]>`
    select case n.nspname when 'public' then '' else n.nspname || '.' end || c.relname as name
    from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p') and not c.relispartition and n.nspname in ('public', 'pgboss') order by 1`;
  expect(rows.map(({ name }) => name)).toEqual(Object.keys(retention).toSorted());
});

test("rows are deleted when their time has passed, and not before", async () => {
  const tables = Object.entries(retention).flatMap(([table, rule]) =>
    "bound" in rule ? [] : [{ table, rule }],
  );
  expect(tables.length).toBeGreaterThan(15);
  const db = await control.ctx.db.reserve();
  try {
    for (const { table, rule } of tables) {
      // Temporary tables have precedence, and these have no constraints.
      await db.unsafe(`create temporary table ${table} as select * from public.${table} with no data`);
      const [written, kept] = "expires" in rule ? [rule.expires, "0 s"] : [rule.column, rule.kept];
      const [, inMs] = /^to_timestamp\((\w+) \/ 1000\)$/.exec(written) ?? [];
      const value = (at: string) => (inMs ? `extract(epoch from ${at}) * 1000` : at);
      for (const off of ["- interval '2 days'", "+ interval '2 days'"])
        await db.unsafe(
          `insert into ${table} (${inMs ?? written}) values (${value(`now() - interval '${kept}' ${off}`)})`,
        );
    }
    // A suspect is needed for as long as it is one.
    await db`update base_crashes set quarantines = 0`;
    await db`
      insert into base_crashes (counted_until, suspected_at, quarantines) values (now() - interval '1 year', now(), 0)`;
    expect(await trimTables(db as unknown as Db)).toEqual(
      Object.fromEntries(tables.map(({ table }) => [table, 1])),
    );
    expect(await trimTables(db as unknown as Db)).toEqual({});
  } finally {
    await db`discard temp`;
    db.release();
  }
});

test("a row that another statement has locked is deleted the next time, without waiting", async () => {
  const { db } = control.ctx;
  await db`insert into attempts (key, count, ends_at) values ('a', 1, now() - interval '1 s'), ('b', 1, now() - interval '1 s')`;
  await db.begin(async (tx) => {
    await tx`select from attempts where key = 'a' for update`;
    expect(await trimTables(db)).toMatchObject({ attempts: 1 });
  });
  expect(await trimTables(db)).toMatchObject({ attempts: 1 });
});

test("a table that cannot be trimmed keeps no other from it, and is named", async () => {
  const { db } = control.ctx;
  await db`insert into attempts (key, count, ends_at) values ('a', 1, now() - interval '1 s')`;
  await db`insert into audit_log (actor_kind, actor, action, at) values ('cli', 'x', 'account.created', now() - interval '20 years')`;
  await db`
    create function hold() returns trigger language plpgsql as 'begin raise exception ''held''; end'`;
  await db`create trigger hold before delete on attempts for each row execute function hold()`;
  await expect(trimTables(db)).rejects.toMatchObject({
    message: "rows of attempts were not deleted",
    cause: { message: "held" },
  });
  expect(await db`select from audit_log where at < now() - interval '19 years'`).toEqual([]);
  await db`drop function hold() cascade`;
  expect(await trimTables(db)).toEqual({ attempts: 1 });
});
