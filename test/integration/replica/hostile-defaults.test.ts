/** Defaults of a server, a database or a role do not affect what is written: I3 and I5 hold under any of them. */
import fc from "fast-check";
import postgres from "postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import { deleteBase, getBase } from "../../../core/control/bases";
import { migrateControl } from "../../../core/control/setup";
import { createLogger } from "../../../core/log";
import { openQueue } from "../../../core/queue";
import {
  applyLinkViews,
  applyRowImages,
  applySettings,
  claimEpoch,
  compileMapper,
  databaseUrl,
  dropDatabase,
  installReplica,
  loadCatalog,
  mapRecords,
  markSyncCompleted,
  markSyncStarted,
  nameDatabase,
  openReplica,
  provisionDatabase,
} from "../../../core/replica";
import { caller, connectBase, testControl } from "../../support/control-support";
import { fuzzRuns } from "../../support/fuzz";
import { type PostgresServer, postgresServer } from "../../support/servers/postgres-server";
import { shopIn } from "../../support/shop";
import { sourceRecord } from "../../support/source-records";

/** Each one breaks some statement of a session that uses it. */
const HOSTILE: [string, string][] = [
  ["default_transaction_isolation", "'serializable'"],
  ["default_transaction_isolation", "'repeatable read'"],
  ["default_transaction_deferrable", "on"],
  ["synchronous_commit", "off"],
  ["statement_timeout", "'3s'"],
  ["lock_timeout", "'1ms'"],
  ["idle_in_transaction_session_timeout", "'1ms'"],
  ["DateStyle", "'SQL, DMY'"],
  ["DateStyle", "'German'"],
  ["IntervalStyle", "'sql_standard'"],
  ["TimeZone", "'Asia/Kathmandu'"],
  ["extra_float_digits", "-15"],
  ["bytea_output", "'escape'"],
  ["xmlbinary", "'hex'"],
  ["array_nulls", "off"],
  ["standard_conforming_strings", "off"],
  ["quote_all_identifiers", "on"],
  ["transform_null_equals", "on"],
  ["row_security", "off"],
  ["check_function_bodies", "off"],
  ["exit_on_error", "on"],
  ["search_path", "'evil', 'public'"],
  ["transaction_timeout", "'3s'"],
  ["restrict_nonsystem_relation_kind", "'view'"],
  ["plpgsql.extra_errors", "'all'"],
  ["client_encoding", "'LATIN1'"],
  ["client_min_messages", "'error'"],
  ["password_encryption", "'md5'"],
  ["enable_indexscan", "off"],
  ["debug_parallel_query", "on"],
  ["work_mem", "'64kB'"],
];

/** Those that only a superuser's session can correct. */
const FOR_SUPERUSERS: [string, string][] = [
  ["session_replication_role", "replica"],
  ["plpgsql.variable_conflict", "'use_column'"],
];

type Level = "database" | "role" | "role in database";

let server: PostgresServer;
let admins: string[];
beforeAll(async () => {
  server = await postgresServer({ version: "18" });
  admins = [
    await server.role("hostile_super", "superuser"),
    await server.role("hostile_admin", "createdb createrole"),
  ];
}, 60_000);
afterAll(() => server?.[Symbol.asyncDispose]());

const roleOf = (url: string) => new URL(url).username;

/** Until the returned function is called. */
async function setDefaults(role: string, database: string, level: Level, settings: [string, string][]) {
  const whose = {
    database: `alter database ${database}`,
    role: `alter role ${role}`,
    "role in database": `alter role ${role} in database ${database}`,
  }[level];
  await server.run(settings.map(([name, value]) => `${whose} set ${name} = ${value}`));
  return () => server.run([`${whose} reset all`]);
}

const NAMES = {
  Name: "text",
  Tags: "multiple_select",
  Links: "links",
  Count: "number",
  Day: "date",
  At: "date_time",
} as const;
const RECORDS = [
  sourceRecord("rec1", {
    fld0: "back\\slash 'quote' \"double\" {brace} NULL \u{1F600} 03/04/2024",
    fld1: ["NULL", "", "a,b", "\\"],
    fld2: ["recA", "recB"],
    fld3: 0.1 + 0.2,
    fld4: "2024-03-04",
    fld5: "2024-03-04T23:30:00.123Z",
  }),
  sourceRecord("rec2", { fld0: "", fld3: 123456789012345.67, fld5: "1999-12-31T23:59:59.999Z" }),
];

/** A replica's complete life, with these defaults from the start. @returns its contents at the end, as text */
async function life(adminUrl: string, level: Level, settings: [string, string][]): Promise<string> {
  const made = nameDatabase();
  const set = () => setDefaults(roleOf(adminUrl), made.database, level, settings);
  let reset = level === "role" ? await set() : undefined;
  try {
    await provisionDatabase(adminUrl, undefined, made);
    reset ??= await set();
    const url = databaseUrl(adminUrl, made.database);
    await installReplica(url, { schema: "public", role: made.role });
    const replica = openReplica({ url, schema: "public" });
    await using _closed = { [Symbol.asyncDispose]: () => replica.close() };
    const epoch = await claimEpoch(replica);
    await applySettings(replica, epoch, { history: true, notify: true });
    await applyLinkViews(replica, epoch, true);
    await markSyncStarted(replica, epoch);
    const stub = {
      replica,
      epoch,
      readerUrl: url,
      ownerUrl: url,
      role: made.role,
      [Symbol.asyncDispose]: async () => {},
    };
    const shop = await shopIn(stub, replica.sql as unknown as postgres.Sql, { Name: "text" });
    await shop.become(NAMES);
    const write = async (records: typeof RECORDS, gone: string[]) => {
      const table = (await loadCatalog(replica)).get("tblO")!;
      const rows = mapRecords(compileMapper(table.spec), records, []);
      const readVersion = Number.MAX_SAFE_INTEGER;
      return applyRowImages(replica, table, { epoch, readVersion, rows, gone, issues: [], records });
    };
    await write(RECORDS, []);
    // Rows from before are equal: nothing differs, and nothing is recorded.
    expect(await write(RECORDS, [])).toMatchObject({ inserted: 0, updated: 0 });
    await write([{ ...RECORDS[0]!, fields: { ...RECORDS[0]!.fields, fld3: 0.3 } }], ["rec2"]);
    await shop.become({ ...NAMES, Later: "text" }, "Bestellungen");
    await markSyncCompleted(replica, epoch);
    const [commit] = await replica.sql.begin(async (tx) => {
      await tx`select ${tx.unsafe(replica.swap)}.fence(${epoch})`;
      return tx`select current_setting('synchronous_commit') as mode`;
    });
    expect(commit!.mode).toBe("on");
    const [limits] = await replica.sql`
      select current_setting('statement_timeout') as statement, current_setting('transaction_timeout') as transaction`;
    expect(limits).toEqual({ statement: "0", transaction: "0" });
    await reset();
    return await dump(made.database);
  } finally {
    await reset?.();
    await dropDatabase(adminUrl, made.database, made.role);
  }
}

/** Rows, history, issues, views and comments, read with Postgres' own defaults. */
async function dump(database: string): Promise<string> {
  const sql = postgres(server.as("postgres", database), { max: 1, onnotice: () => {} });
  try {
    const parts = [
      await sql`select t.*::text from public.bestellungen as t order by id`,
      await sql`select * from public.bestellungen__links order by 1, 2`,
      await sql`select table_name, record_id, operation, old::text, new::text, by from public._sync_history order by id`,
      await sql`select table_name, record_id, field, value, reason from public._sync_issues order by 1, 2, 3`,
      await sql`select completed_at >= started_at as done, duration_last < '1 hour' as short from public._sync_meta`,
      await sql`select table_id, record_id, gone, image::text, written from public_swap._recent_writes order by 1, 2`,
      await sql`
        select c.relname, a.attname, a.attnum, format_type(a.atttypid, a.atttypmod) as type,
          col_description(c.oid, a.attnum) as comment
        from pg_class as c join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0
        where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'v') order by 1, 3`,
      await sql`select relname, am.amname, relacl is null as open from pg_class as c join pg_am as am on am.oid = c.relam
        where relnamespace = 'public'::regnamespace order by 1`,
    ];
    return JSON.stringify(parts, null, 1);
  } finally {
    await sql.end();
  }
}

test("a replica is the same under all hostile defaults at once, for any role", {
  timeout: 300_000,
}, async () => {
  for (const admin of admins) {
    const usual = await life(admin, "role", []);
    expect(usual).toContain("back");
    for (const level of ["database", "role", "role in database"] as const) {
      const all = admin === admins[0] ? [...HOSTILE, ...FOR_SUPERUSERS] : HOSTILE;
      expect([level, await life(admin, level, all)]).toEqual([level, usual]);
    }
  }
});

test("a replica is the same under any hostile defaults", {
  timeout: 120_000 + 60_000 * fuzzRuns,
}, async () => {
  const usual = await life(admins[1]!, "role", []);
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...admins),
      fc.constantFrom<Level>("database", "role", "role in database"),
      fc.subarray(HOSTILE, { minLength: 1 }),
      async (admin, level, settings) => {
        expect(await life(admin, level, settings)).toBe(usual);
      },
    ),
    { numRuns: 3 * fuzzRuns, interruptAfterTimeLimit: 40_000 * fuzzRuns },
  );
});

/** What the migrations and the queue have created: text of everything, read with Postgres' own defaults. */
async function catalog(database: string): Promise<string> {
  const sql = postgres(server.as("postgres", database), { max: 1, onnotice: () => {} });
  try {
    const schemas = ["public", "pgboss"];
    const parts = [
      await sql`
        select c.oid::regclass::text as name, c.relkind, c.relreplident, a.attname, a.attnotnull,
          format_type(a.atttypid, a.atttypmod) as type, pg_get_expr(d.adbin, d.adrelid) as default
        from pg_class as c join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0
          left join pg_attrdef as d on d.adrelid = c.oid and d.adnum = a.attnum
        where c.relnamespace::regnamespace::text = any (${schemas}) order by 1, a.attnum`,
      await sql`
        select conrelid::regclass::text as name, conname, pg_get_constraintdef(oid) as definition from pg_constraint
        where connamespace::regnamespace::text = any (${schemas}) order by 1, 2`,
      await sql`
        select p.oid::regprocedure::text as name, p.prosrc, p.proconfig from pg_proc as p
        where p.pronamespace::regnamespace::text = any (${schemas}) order by 1`,
      await sql`select indexdef from pg_indexes where schemaname = any (${schemas}) order by 1`,
    ];
    return JSON.stringify(parts, null, 1);
  } finally {
    await sql.end();
  }
}

/** A control plane from its first migration until a base has been created and deleted. @returns its definition */
async function controlLife(name: string, settings: [string, string][]): Promise<string> {
  await server.run([`create database ${name} owner hostile_control`]);
  const resets = [
    await setDefaults("hostile_control", name, "database", settings),
    await setDefaults("hostile_control", name, "role in database", settings),
  ];
  const url = server.as("hostile_control", name);
  const log = createLogger("error", "test");
  await migrateControl(url, log);
  {
    await using control = await testControl(admins[1], { url, [Symbol.asyncDispose]: async () => {} });
    const queue = await openQueue(control.ctx, url, { isWorker: false });
    await using _stopped = { [Symbol.asyncDispose]: () => queue.close() };
    const { token } = await control.addAccount("person@example.com");
    const call = caller(consoleApp(control.ctx));
    const { status, body } = await connectBase(call, token);
    expect(status).toBe(201);
    await queue.requestSync(body.id);
    const { body: base } = await call("GET", `/api/v1/bases/${body.id}`, { token });
    expect(base).toMatchObject({ id: body.id, name: "Inventory" });
    const [row] = await control.ctx.db<{ created_at: Date; is_now: boolean }[]>`
      select created_at, created_at between now() - interval '5 minutes' and now() as is_now from bases`;
    expect([row!.is_now, Math.abs(Date.now() - row!.created_at.getTime()) < 300_000]).toEqual([true, true]);
    await deleteBase(control.ctx, await getBase(control.ctx.db, body.id));
    expect(await control.ctx.db`select from sync_runs union all select from databases`).toHaveLength(0);
  }
  for (const reset of resets) await reset();
  return catalog(name);
}

test("a control plane is created the same, and works, under all hostile defaults", {
  timeout: 300_000,
}, async () => {
  await server.role("hostile_control");
  const usual = await controlLife("control_usual", []);
  expect(await controlLife("control_hostile", HOSTILE)).toBe(usual);
});
