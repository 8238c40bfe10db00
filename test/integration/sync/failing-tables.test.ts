/** The unit of failure is the table: the others are synced, and it is tried again by itself. */
import postgres from "postgres";
import { expect, type TestContext, test, vi } from "vitest";
import { BasetideError } from "../../../core/errors";
import { recordDamage } from "../../../core/replica";
import { syncBase } from "../../../core/sync/engine";
import { asAdmin, superuserUrl } from "../../support/admin";
import { type Engine, testEngine } from "../../support/engine";
import { until } from "../../support/poll";
import { sourceRecord, sourceTable } from "../../support/source-records";

// The tests mostly wait, each with its own engine.
vi.setConfig({ testTimeout: 60_000 });

const note = (id: string, text: string) => sourceRecord(id, { fld0: text, fld1: `${text}!` });

/** A base with the tables A, which fails, and Z, each with three records. */
async function twoTables({ onTestFinished }: TestContext) {
  const engine = await testEngine({ onFinished: onTestFinished });
  const [a, z] = ["A", "Z"].map((name) =>
    engine.source.add(
      sourceTable(`tbl${name}`, name, { Name: "text", Note: "text" }),
      [1, 2, 3].map((n) => note(`rec${name}${n}`, `${name}${n}`)),
    ),
  );
  return { engine, a: a!, z: z! };
}

const names = async (engine: Engine, table: string) =>
  ((await engine.rows(table)) as { name: string }[]).map(({ name }) => name).sort();

const refused = (code: ConstructorParameters<typeof BasetideError>[0]) => (call: string) => {
  if (call.startsWith("list tblA")) throw new BasetideError(code, "Airtable said no.");
};

test.concurrent.for(["source_forbidden", "source_rejected", "source_unavailable", "source_timeout"] as const)(
  "a table that answers %s is listed by name, the others are synced, and it recovers by itself",
  async (code, context) => {
    const { engine, a, z } = await twoTables(context);
    await engine.sync();
    engine.source.before = refused(code);
    a.records.set("recA1", note("recA1", "changed"));
    for (const text of ["first", "second"]) {
      z.records.set("recZ1", note("recZ1", text));
      expect(await engine.sync()).toMatchObject({
        completedAt: expect.any(Date),
        failing: [{ table_id: "tblA", name: "A", code, message: expect.stringContaining('"A"') }],
      });
      expect(await names(engine, "z")).toContain(text);
    }
    // Nothing that it has is lost, and it is not asked for during its pause.
    expect(await names(engine, "a")).toEqual(["A1", "A2", "A3"]);
    const { length } = engine.source.calls;
    await engine.sync();
    expect(engine.source.calls.slice(length).some((call) => call.startsWith("list tblA"))).toBe(false);
    engine.source.before = () => {};
    await until(async () => (await engine.sync()).failing === undefined, {
      what: "A is read",
      timeoutMs: 20_000,
    });
    expect(await names(engine, "a")).toContain("changed");
  },
);

test.concurrent("a first sync completes without a table that cannot be read, and builds it later", async (context) => {
  const { engine } = await twoTables(context);
  engine.source.before = refused("source_forbidden");
  const report = await engine.sync();
  expect(report).toMatchObject({
    kind: "first",
    completedAt: expect.any(Date),
    failing: [{ name: "A" }],
    tables: [{ name: "z", records: 3 }],
  });
  engine.source.before = () => {};
  await until(async () => (await engine.sync()).failing === undefined, {
    what: "A is built",
    timeoutMs: 20_000,
  });
  expect(await names(engine, "a")).toEqual(["A1", "A2", "A3"]);
});

test.concurrent("a table that never answers does not keep a sync from ending, and a slow one is waited for", async (context) => {
  const { engine, z } = await twoTables(context);
  await engine.sync();
  const hung = Promise.withResolvers<void>();
  engine.source.before = (call) => (call.startsWith("list tblA") ? hung.promise : undefined);
  z.records.set("recZ1", note("recZ1", "new"));
  expect(await engine.sync()).toMatchObject({ failing: [{ name: "A", code: "source_timeout" }] });
  expect(await names(engine, "z")).toContain("new");
  hung.resolve();
  await until(async () => (await engine.sync()).failing === undefined, {
    what: "A is read",
    timeoutMs: 20_000,
  });
});

test.concurrent("a write that does not end keeps no sync from ending, is given up, and its trigger is named", async (context) => {
  const { engine, a, z } = await twoTables(context);
  await engine.sync();
  const admin = superuserUrl(engine.replica.ownerUrl);
  await asAdmin(
    (sql) =>
      sql`
        create function public.wait_long() returns trigger language plpgsql as $$
          begin perform pg_sleep(3600); return new; end $$;
        create trigger wait_long before update on public.a for each row execute function public.wait_long()`.simple(),
    admin,
  );
  a.records.set("recA1", note("recA1", "changed"));
  z.records.set("recZ1", note("recZ1", "new"));
  expect(await engine.sync()).toMatchObject({ failing: [{ name: "A", code: "replica_busy" }] });
  expect(await names(engine, "z")).toContain("new");
  // The same statement is still running, and is not sent again.
  expect(engine.cache.failing.probing).toEqual(new Set(["tblA"]));
  z.records.set("recZ1", note("recZ1", "newer"));
  await engine.sync();
  expect(await names(engine, "z")).toContain("newer");
  await until(() => engine.cache.failing.probing.size === 0, { what: "it is given up", timeoutMs: 20_000 });
  const [failing] = engine.cache.failing.list();
  expect(failing).toMatchObject({ code: "replica_refused", message: expect.stringContaining("wait_long()") });
  await asAdmin((sql) => sql`drop trigger wait_long on public.a`.simple(), admin);
  await until(async () => (await engine.sync()).failing === undefined, {
    what: "A is written",
    timeoutMs: 20_000,
  });
  expect(await names(engine, "a")).toContain("changed");
});

test.concurrent("a table whose trigger ends our session fails by itself, and is written once the trigger is gone", async (context) => {
  const { engine, a, z } = await twoTables(context);
  await engine.sync();
  await administer(
    engine,
    `create function public.end_session() returns trigger language plpgsql as $$
       begin perform pg_terminate_backend(pg_backend_pid()); return new; end $$;
     create trigger end_session before update on public.a for each row execute function public.end_session()`,
  );
  a.records.set("recA1", note("recA1", "changed"));
  for (const text of ["new", "newer"]) {
    z.records.set("recZ1", note("recZ1", text));
    expect(await engine.sync()).toMatchObject({
      completedAt: expect.any(Date),
      failing: [
        { name: "A", code: "replica_refused", message: expect.stringContaining("pg_terminate_backend") },
      ],
    });
    expect(await names(engine, "z")).toContain(text);
  }
  await administer(engine, "drop trigger end_session on public.a");
  await until(async () => (await engine.sync()).failing === undefined, {
    what: "A is written",
    timeoutMs: 20_000,
  });
  expect(await names(engine, "a")).toContain("changed");
});

/** Runs statements as the administrator of the server. */
const administer = (engine: Engine, text: string) =>
  asAdmin((sql) => sql.unsafe(text).simple(), superuserUrl(engine.replica.ownerUrl));

test.concurrent("a table that an administrator gives to another role fails by itself, and is compared when it is ours again", async (context) => {
  const { engine, z } = await twoTables(context);
  const { sql } = engine.replica.replica;
  await engine.sync();
  await administer(engine, "alter table public.a owner to pg_monitor");
  for (const text of ["first", "second"]) {
    z.records.set("recZ1", note("recZ1", text));
    expect(await engine.sync()).toMatchObject({
      completedAt: expect.any(Date),
      failing: [
        {
          name: "A",
          code: "destination_invalid",
          message: expect.stringContaining("belongs to the role pg_monitor"),
        },
      ],
    });
    expect(await names(engine, "z")).toContain(text);
  }
  // Other tables are renamed, and a worker that starts now goes on.
  z.table.name = "Zed";
  await engine.restart();
  expect(await recordDamage(engine.replica.replica, engine.input().epoch)).toEqual(["tblA"]);
  expect(await engine.sync()).toMatchObject({ failing: [{ name: "A" }] });
  expect(await names(engine, "zed")).toContain("second");
  // Its new owner changes a row.
  await administer(
    engine,
    `update public.a set name = 'theirs' where id = 'recA1';
     do $$ begin execute format('alter table public.a owner to %I',
       (select tableowner from pg_tables where tablename = '_sync_meta')); end $$`,
  );
  await until(async () => (await engine.sync()).failing === undefined, {
    what: "A is compared",
    timeoutMs: 30_000,
  });
  expect(await names(engine, "a")).toEqual(["A1", "A2", "A3"]);
  const [kept] = await sql`select 1 from pg_tables where schemaname = 'public' and tablename = 'a'`;
  expect(kept).toBeDefined();
});

test.concurrent("a lock of a customer's keeps no other table from being judged, and none of a failing table's log", async (context) => {
  const { engine, a, z } = await twoTables(context);
  await engine.sync();
  const holder = postgres(superuserUrl(engine.replica.ownerUrl), { max: 1, onnotice: () => {} });
  await holder`begin; lock table public.a in access exclusive mode`.simple();
  // The sweep asks SQL for all rows of A, since one is missing.
  a.records.delete("recA1");
  z.records.set("recZ1", note("recZ1", "new"));
  expect(await engine.sync()).toMatchObject({
    completedAt: expect.any(Date),
    failing: [{ name: "A", code: "replica_busy" }],
  });
  expect(await names(engine, "z")).toContain("new");
  await holder.end({ timeout: 1 });
  await until(async () => (await engine.sync()).failing === undefined, {
    what: "A is swept",
    timeoutMs: 20_000,
  });
  expect(await names(engine, "a")).toEqual(["A2", "A3"]);
});

test.concurrent.for(["source_forbidden", "source_unavailable", "source_bad_answer"] as const)(
  "a worker that has just started syncs the rows of known tables while the schema answers %s",
  async (code, context) => {
    const { engine, a, z } = await twoTables(context);
    await engine.sync();
    const sync = () => {
      const input = engine.input();
      return syncBase({ ...input, base: { ...input.base, sync: { startedAt: new Date() } as never } });
    };
    await engine.restart();
    engine.source.before = (call) => {
      if (call === "schema") throw new BasetideError(code);
    };
    z.records.set("recZ1", note("recZ1", "new"));
    a.records.delete("recA1");
    expect(await sync()).toMatchObject({ kind: "sweep", completedAt: expect.any(Date) });
    expect(await names(engine, "z")).toContain("new");
    expect(await names(engine, "a")).toEqual(["A2", "A3"]);
    expect(engine.cache.schemaError).toMatchObject({ code });
    expect(engine.changes.length).toBe(2);
    // What the replica does not know comes with the schema.
    z.table.fields.push({ id: "fld2", name: "More", type: "text", sourceType: "text" });
    engine.source.before = () => {};
    await until(async () => (await sync()) && engine.cache.schemaError === null, {
      what: "the schema is read",
      timeoutMs: 20_000,
    });
    await sync();
    expect(Object.keys((await engine.rows("z"))[0] as object)).toContain("more");
  },
);

test.concurrent("a first sync that another worker has begun syncs the tables that are there, and goes on with the schema", async (context) => {
  const { engine, z } = await twoTables(context);
  engine.source.before = refused("source_unavailable");
  await engine.sync();
  await engine.restart();
  engine.source.before = (call) => {
    if (call === "schema") throw new BasetideError("source_unavailable");
  };
  z.records.set("recZ1", note("recZ1", "new"));
  const synced = engine.sync();
  await until(async () => (await names(engine, "z")).includes("new"), { what: "Z is synced" });
  await until(() => engine.cache.schemaError !== null, { what: "the schema is named" });
  // It asks again, and is not complete.
  const asked = () => engine.source.calls.filter((call) => call === "schema").length;
  const before = asked();
  await until(() => asked() > before, { what: "the schema is asked for again" });
  expect(await Promise.race([synced, "running"])).toBe("running");
  engine.source.before = () => {};
  expect(await synced).toMatchObject({ kind: "first", completedAt: expect.any(Date) });
  expect(engine.cache.schemaError).toBeNull();
  expect(await names(engine, "a")).toEqual(["A1", "A2", "A3"]);
});

test.concurrent("a sync that no other follows soon reads a table that answers again", async (context) => {
  const { engine, a, z } = await twoTables(context);
  await engine.sync();
  engine.source.before = refused("source_unavailable");
  await engine.sync();
  // It answers after the other table was synced.
  engine.source.before = async (call) => {
    if (!call.startsWith("list tblA")) return;
    await until(async () => (await names(engine, "z")).includes("new"), { what: "Z is synced" });
  };
  a.records.set("recA1", note("recA1", "changed"));
  z.records.set("recZ1", note("recZ1", "new"));
  await until(async () => engine.cache.failing.dueInMs("tblA") <= 0, { what: "the pause is over" });
  expect(await syncBase({ ...engine.input(), restsAfter: true })).not.toHaveProperty("failing");
  expect(await names(engine, "a")).toContain("changed");
  // One that does not answer is waited for as long as any table.
  engine.source.before = refused("source_unavailable");
  await engine.sync();
  await until(async () => engine.cache.failing.dueInMs("tblA") <= 0, { what: "the pause is over" });
  const hung = Promise.withResolvers<void>();
  engine.source.before = (call) => (call.startsWith("list tblA") ? hung.promise : undefined);
  expect(await syncBase({ ...engine.input(), restsAfter: true })).toMatchObject({ failing: [{ name: "A" }] });
  hung.resolve();
});

test.concurrent("if no table can be read, the sync fails", async (context) => {
  const { engine } = await twoTables(context);
  await engine.sync();
  engine.source.before = (call) => {
    if (call.startsWith("list")) throw new BasetideError("source_forbidden");
  };
  expect(await engine.sync()).toMatchObject({ completedAt: null, error: { code: "source_forbidden" } });
  engine.source.before = () => {};
  expect(await engine.sync()).toMatchObject({ completedAt: expect.any(Date) });
});

test.concurrent.for([
  "source_key_refused",
  "source_forbidden",
  "source_unavailable",
  "source_bad_answer",
] as const)("rows of known tables are synced while the schema answers %s", async (code, context) => {
  const { engine, z } = await twoTables(context);
  await engine.sync();
  const told: unknown[] = [];
  const sync = () => engine.sync({ onSchemaError: (error) => told.push(error?.code ?? null) });
  engine.source.before = (call) => {
    if (call === "schema") throw new BasetideError(code);
  };
  z.records.set("recZ1", note("recZ1", "new"));
  expect(await sync()).toMatchObject({ completedAt: expect.any(Date) });
  expect(await names(engine, "z")).toContain("new");
  expect(engine.cache.schemaError).toMatchObject({ code, since: expect.any(String) });
  engine.source.before = () => {};
  await until(async () => (await sync()) && engine.cache.schemaError === null, {
    what: "the schema is read",
    timeoutMs: 20_000,
  });
  expect([told[0], told.at(-1)]).toEqual([code, null]);
});

test.concurrent("I2: a table and a field that a schema leaves out stay as long as their records answer", async (context) => {
  const { engine, a } = await twoTables(context);
  await engine.sync();
  const { fields } = a.table;
  const [name, other] = fields;
  const lists = engine.source.tables;
  // Missing from the schema only, answer after answer.
  engine.source.hidden = (table) =>
    table.id === "tblA" ? { ...table, fields: [name!] } : table.id === "tblZ" ? undefined : table;
  a.records.set("recA4", note("recA4", "new"));
  for (let look = 0; look < 3; look++) await engine.sync();
  expect(await engine.rows("a")).toContainEqual(expect.objectContaining({ name: "new", note: "new!" }));
  expect(await names(engine, "z")).toEqual(["Z1", "Z2", "Z3"]);
  expect(engine.changes.filter(({ kind }) => kind.endsWith("dropped"))).toEqual([]);
  // Really gone.
  engine.source.hidden = (table) => table;
  fields.splice(fields.indexOf(other!), 1);
  lists.splice(1, 1);
  await engine.sync();
  expect(Object.keys((await engine.rows("a"))[0] as object)).not.toContain("note");
  await expect(engine.rows("z")).rejects.toMatchObject({ code: "42P01" });
  // A removal is looked at again.
  expect(engine.cache.schemaLookAt).toBeLessThan(Number.POSITIVE_INFINITY);
});
