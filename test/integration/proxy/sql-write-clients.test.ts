/** SQL writes from other clients than postgres.js, unchanged: a rollback, a commit, and Airtable's error. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { drizzle } from "drizzle-orm/node-postgres";
import { pgSchema, text } from "drizzle-orm/pg-core";
import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import postgres from "postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import { errorOf } from "../../support/error-of";
import { node } from "../../support/node";
import { PRISMA_FOLDER, writeWithPrisma } from "../../support/prisma/client";
import type { ProxyStack } from "../../support/proxy-stack";
import { scratchFolder } from "../../support/scratch";
import { writableTasks, writeStack } from "../../support/sql-writes";
import { runInTools, TOOLS_FOLDER } from "../../support/tools/generators";
import { ofDebian, pinned, runs } from "../../support/tools/table";

const PYTHON = "/usr/bin/python3";
/** Some packages are installed on first use. */
const INSTALL_MS = 300_000;
const JDBC = "/usr/share/java/postgresql.jar";

let stack: ProxyStack;
let at: Awaited<ReturnType<typeof writableTasks>>;

beforeAll(async () => {
  stack = await writeStack();
  at = await writableTasks(stack, 0);
});
afterAll(() => stack?.[Symbol.asyncDispose]());

async function writerUrl(mode: "at_commit" | "at_once" = "at_commit"): Promise<string> {
  return (await at.writer({ mode })).url;
}

/** Runs a program, which prints `23514` for the error, and nothing else. */
async function run(command: string[]): Promise<string> {
  const program = Bun.spawn(command, {
    stdout: "pipe",
    stderr: "pipe",
    env: { ...process.env, PGCONNECT_TIMEOUT: "10" },
  });
  const [out, error] = await Promise.all([
    new Response(program.stdout).text(),
    new Response(program.stderr).text(),
    program.exited,
  ]);
  return out.trim() || error;
}

/** The tasks that this client has made: its rollback left none. */
function madeBy(client: string): unknown[] {
  return at
    .inSource()
    .filter(({ Name }) => String(Name).startsWith(client))
    .map(({ Name, Status }) => [Name, Status]);
}

test("pg", async () => {
  const url = await writerUrl();
  const client = new pg.Client(url);
  await client.connect();
  await client.query("begin");
  await client.query("insert into write.tasks (name) values ($1)", ["pg gone"]);
  await client.query("rollback");
  const { rows } = await client.query(
    "insert into write.tasks (name, status) values ($1, $2) returning name",
    ["pg", "Open"],
  );
  expect(rows).toEqual([{ name: "pg" }]);
  expect((await errorOf(client.query("insert into write.tasks (status) values ('None')"))).code).toBe(
    "23514",
  );
  await client.end();
  expect(madeBy("pg")).toEqual([["pg", "Open"]]);
});

test("Kysely", async () => {
  const pool = new pg.Pool({ connectionString: await writerUrl(), max: 1 });
  const db = new Kysely<{ tasks: { name: string; status: string } }>({
    dialect: new PostgresDialect({ pool }),
  }).withSchema("write");
  await db
    .transaction()
    .execute(async (tx) => {
      await tx.insertInto("tasks").values({ name: "Kysely gone", status: "Open" }).execute();
      throw new Error("roll back");
    })
    .catch(() => {});
  await db.insertInto("tasks").values({ name: "Kysely", status: "Open" }).execute();
  await db.updateTable("tasks").set({ status: "Done" }).where("name", "=", "Kysely").execute();
  const failing = db.updateTable("tasks").set({ status: "None" }).where("name", "=", "Kysely").execute();
  expect((await errorOf(failing)).code).toBe("23514");
  await db.destroy();
  expect(madeBy("Kysely")).toEqual([["Kysely", "Done"]]);
});

test("Drizzle", async () => {
  const pool = new pg.Pool({ connectionString: await writerUrl(), max: 1 });
  const tasks = pgSchema("write").table("tasks", { id: text(), name: text(), status: text() });
  const db = drizzle(pool);
  await db
    .transaction(async (tx) => {
      await tx.insert(tasks).values({ name: "Drizzle gone" });
      tx.rollback();
    })
    .catch(() => {});
  // It names every column, those without a value with DEFAULT.
  await db.insert(tasks).values({ name: "Drizzle", status: "Open" });
  const failed = (await errorOf(db.insert(tasks).values({ status: "None" }))) as {
    cause?: { code?: string };
  };
  expect(failed.cause?.code).toBe("23514");
  await pool.end();
  expect(madeBy("Drizzle")).toEqual([["Drizzle", "Open"]]);
});

test("one transaction per request, as PostgREST has it", async () => {
  const client = new pg.Client(await writerUrl());
  await client.connect();
  const request = async (source: string, end: string) => {
    await client.query("begin isolation level read committed read write");
    await client.query(
      "select set_config('search_path', '\"write\", \"public\"', true), set_config('request.method', 'POST', true)",
    );
    const { rows } = await client.query(
      `with pgrst_source as (${source}) select count(*)::int as n, coalesce(json_agg(_postgrest_t), '[]') as body
       from (select pgrst_source.* from pgrst_source) as _postgrest_t`,
    );
    await client.query(end);
    return rows[0];
  };
  const insert = (name: string, status: string) =>
    `insert into "write"."tasks" ("name", "status") select pgrst_body."name", pgrst_body."status"
     from (select '{"name": "${name}", "status": "${status}"}'::json as json_data) as pgrst_payload,
     lateral (select "name", "status" from json_to_record(pgrst_payload.json_data) as _("name" text, "status" text)) as pgrst_body
     returning "write"."tasks"."name"`;
  expect(await request(insert("PostgREST gone", "Open"), "rollback")).toEqual({
    n: 1,
    body: [{ name: "PostgREST gone" }],
  });
  expect(await request(insert("PostgREST", "Open"), "commit")).toMatchObject({ n: 1 });
  const change = `update "write"."tasks" set "status" = 'Done' where "write"."tasks"."name" = 'PostgREST' returning 1`;
  expect(await request(change, "commit")).toMatchObject({ n: 1 });
  expect((await errorOf(request(insert("PostgREST", "None"), "commit"))).code).toBe("23514");
  await client.end();
  expect(madeBy("PostgREST")).toEqual([["PostgREST", "Done"]]);
});

test("the statements of the guides for Retool, Metabase and dbt", async () => {
  const sql = postgres(await writerUrl(), { max: 1 });
  await sql`insert into write.tasks (name, status) select 'Tool ' || n, 'Open' from generate_series(1, 3) as n`;
  const shown = await sql<{ id: string }[]>`select id from tasks where name like 'Tool%' order by name`;
  const [first, second] = shown.map(({ id }) => id);
  await sql`update write.tasks set status = ${"Done"} where id = ${first!}`;
  const changed = JSON.stringify([{ id: second, status: "Done" }]);
  await sql`update write.tasks as t set status = r.status
    from json_to_recordset(${changed}::text::json) as r (id text, status text) where r.id = t.id`;
  const writes = () =>
    stack.sandbox.control.log(at.sourceBaseId).filter(({ method }) => method !== "GET").length;
  const before = writes();
  await sql`update write.tasks as t set status = s.status from (values (${first!}::text, 'Done')) as s (id, status)
    where s.id = t.id and t.status is distinct from s.status`;
  expect(writes()).toBe(before);
  await sql.end();
  expect(madeBy("Tool")).toEqual([
    ["Tool 1", "Done"],
    ["Tool 2", "Done"],
    ["Tool 3", "Open"],
  ]);
});

const has = (module: string) => Bun.spawnSync([PYTHON, "-c", `import ${module}`]).exitCode === 0;

test.skipIf(!has("psycopg"))("psycopg", runs(ofDebian("python3-psycopg")), async () => {
  const said = await run([
    ...[PYTHON, "-c"],
    `
import sys, psycopg
with psycopg.connect(sys.argv[1]) as db:
    db.execute("insert into write.tasks (name) values ('psycopg gone')")
    db.rollback()
    with db.cursor() as cursor:
        cursor.executemany("insert into write.tasks (name, status) values (%s, %s)", [("psycopg 1", "Open"), ("psycopg 2", "Open")])
    db.commit()
    db.execute("update write.tasks set status = 'None' where name = 'psycopg 1'")
    try:
        db.commit()
    except psycopg.Error as error:
        print(error.sqlstate)`,
    await writerUrl(),
  ]);
  expect(said).toBe("23514");
  expect(madeBy("psycopg")).toEqual([
    ["psycopg 1", "Open"],
    ["psycopg 2", "Open"],
  ]);
});

test.skipIf(!has("sqlalchemy"))("SQLAlchemy core", runs(ofDebian("python3-sqlalchemy")), async () => {
  const said = await run([
    ...[PYTHON, "-c"],
    `
import sys, sqlalchemy as sa
engine = sa.create_engine(sys.argv[1].replace("postgres:", "postgresql+psycopg2:"))
tasks = sa.Table("tasks", sa.MetaData(), sa.Column("id", sa.Text, primary_key=True), sa.Column("name", sa.Text),
    sa.Column("status", sa.Text), schema="write")
with engine.connect() as db:
    transaction = db.begin()
    db.execute(tasks.insert().values(name="alchemy core gone"))
    transaction.rollback()
with engine.begin() as db:
    db.execute(tasks.insert(), [{"name": "alchemy core 1", "status": "Open"}, {"name": "alchemy core 2", "status": "Open"}])
with engine.begin() as db:
    db.execute(tasks.update().where(tasks.c.name == "alchemy core 1").values(status="Done"))
try:
    with engine.begin() as db:
        db.execute(tasks.insert().values(status="None"))
except sa.exc.DBAPIError as error:
    print(error.orig.pgcode)`,
    await writerUrl(),
  ]);
  expect(said).toBe("23514");
  expect(madeBy("alchemy core")).toEqual([
    ["alchemy core 1", "Done"],
    ["alchemy core 2", "Open"],
  ]);
});

test.skipIf(!has("sqlalchemy"))(
  "SQLAlchemy's ORM, at once",
  runs(ofDebian("python3-sqlalchemy")),
  async () => {
    const said = await run([
      ...[PYTHON, "-c"],
      `
import sys, sqlalchemy as sa
from sqlalchemy import orm
engine = sa.create_engine(sys.argv[1].replace("postgres:", "postgresql+psycopg2:"))
Base = orm.declarative_base()
class Task(Base):
    __tablename__ = "tasks"
    __table_args__ = {"schema": "write"}
    id = sa.Column(sa.Text, primary_key=True, server_default=sa.FetchedValue())
    name = sa.Column(sa.Text)
    status = sa.Column(sa.Text)
with orm.Session(engine) as session:
    task = Task(name="alchemy ORM", status="Open")
    session.add(task)
    session.commit()
    assert task.id.startswith("rec")
    task.status = "Done"
    session.commit()
    gone = Task(name="alchemy ORM gone")
    session.add(gone)
    session.commit()
    session.delete(gone)
    session.commit()
    session.add(Task(status="None"))
    try:
        session.commit()
    except sa.exc.DBAPIError as error:
        print(error.orig.pgcode)`,
      await writerUrl("at_once"),
    ]);
    expect(said).toBe("23514");
    expect(madeBy("alchemy ORM")).toEqual([["alchemy ORM", "Done"]]);
  },
);

test.skipIf(!has("django"))("Django, at once", runs(ofDebian("python3-django")), async () => {
  const { hostname, port, pathname, username, password } = new URL(await writerUrl("at_once"));
  const said = await run([
    ...[PYTHON, "-c"],
    `
import sys, django
from django.conf import settings
host, port, name, user, password = sys.argv[1:]
settings.configure(USE_TZ=True, DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "HOST": host, "PORT": port,
    "NAME": name, "USER": user, "PASSWORD": password, "OPTIONS": {"options": "-c search_path=write"}}})
django.setup()
from django.db import DatabaseError, models, transaction
from django.db.models.fields import AutoFieldMixin

class RecordId(AutoFieldMixin, models.TextField):
    empty_strings_allowed = False

class Task(models.Model):
    id = RecordId(primary_key=True)
    name = models.TextField(null=True)
    status = models.TextField(null=True)
    class Meta:
        managed = False
        db_table = "tasks"
        app_label = "airtable"

task = Task.objects.create(name="Django", status="Open")
assert task.id.startswith("rec"), task.id
task.status = "Done"
task.save(update_fields=["status"])
gone = Task.objects.create(name="Django gone")
gone.delete()
Task.objects.bulk_create([Task(name="Django 2", status="Open"), Task(name="Django 3", status="Open")])
assert Task.objects.filter(name__startswith="Django").update(status="Done") == 3
try:
    Task.objects.create(status="None")
except DatabaseError as error:
    print(error.__cause__.pgcode)`,
    hostname,
    port,
    pathname.slice(1),
    username,
    decodeURIComponent(password),
  ]);
  expect(said).toBe("23514");
  expect(madeBy("Django")).toEqual([
    ["Django", "Done"],
    ["Django 2", "Done"],
    ["Django 3", "Done"],
  ]);
});

const hasRuby = (library: string) =>
  Bun.which("ruby") !== null && Bun.spawnSync(["ruby", "-e", `require '${library}'`]).exitCode === 0;

test.skipIf(!hasRuby("active_record"))(
  "ActiveRecord of Rails, at once",
  runs(ofDebian("ruby-activerecord")),
  async () => {
    const said = await run([
      ...["ruby", "-W0", "-e"],
      `
    require "active_record"
    ActiveRecord::Base.establish_connection(ARGV[0].sub("postgres:", "postgresql:") + "?schema_search_path=write")
    class Task < ActiveRecord::Base
      self.table_name = "tasks"
      self.primary_key = "id"
    end
    task = Task.create!(name: "Rails", status: "Open")
    abort "no id: #{task.id}" unless task.id.start_with?("rec")
    task.update!(status: "Done")
    Task.create!(name: "Rails gone").destroy!
    Task.create!([{name: "Rails 2", status: "Open"}, {name: "Rails 3", status: "Open"}])
    Task.where("name like 'Rails%'").update_all(status: "Done")
    begin
      Task.create!(status: "None")
    rescue ActiveRecord::StatementInvalid => error
      puts error.cause.result.error_field(PG::PG_DIAG_SQLSTATE)
    end`,
      await writerUrl("at_once"),
    ]);
    expect(said).toBe("23514");
    expect(madeBy("Rails")).toEqual([
      ["Rails", "Done"],
      ["Rails 2", "Done"],
      ["Rails 3", "Done"],
    ]);
  },
);

const NO_TOOLS = "`bun run tools` installs and runs it";

test.for([
  { name: "knex", mode: "at_commit", made: [["Knex 1", "Done"]] },
  { name: "sequelize", mode: "at_once", made: [["Sequelize", "Done"]] },
  { name: "typeorm", mode: "at_once", made: [["TypeORM", "Done"]] },
] as const)("$name, $mode", { timeout: INSTALL_MS }, async ({ name, mode, made }, { skip, task }) => {
  task.meta.tools = [pinned(TOOLS_FOLDER, name)];
  skip(!process.env.TOOLS || !node, NO_TOOLS);
  expect((await runInTools(`write-${name}.mjs`, await writerUrl(mode))).trim()).toBe("23514");
  expect(madeBy(made[0][0].split(" ")[0]!)).toEqual(made);
});

test("Prisma, at once", { ...runs(pinned(PRISMA_FOLDER, "prisma")), timeout: INSTALL_MS }, async ({
  skip,
}) => {
  skip(!process.env.PRISMA, NO_TOOLS);
  expect(await writeWithPrisma(await writerUrl("at_once"))).toBe("23514");
  expect(madeBy("Prisma")).toEqual([["Prisma", "Done"]]);
});

test.skipIf(!Bun.which("psql"))("psql", async () => {
  const said = await run([
    "psql",
    "-XAtq",
    await writerUrl(),
    "-c",
    "begin",
    "-c",
    "insert into write.tasks (name) values ('psql gone')",
    "-c",
    "rollback",
    "-c",
    "insert into write.tasks (name, status) values ('psql', 'Open')",
    "-c",
    "update write.tasks set status = 'None' where name = 'psql'",
    "-c",
    "\\echo :LAST_ERROR_SQLSTATE",
  ]);
  expect(said).toBe("23514");
  expect(madeBy("psql")).toEqual([["psql", "Open"]]);
});

test.skipIf(!hasRuby("pg"))("Ruby's pg", async () => {
  const said = await run([
    "ruby",
    "-e",
    `
    require "pg"
    db = PG.connect(ARGV[0])
    db.transaction { |tx| tx.exec("insert into write.tasks (name) values ('ruby gone')"); raise PG::RollbackTransaction } rescue nil
    db.exec_params("insert into write.tasks (name, status) values ($1, $2)", ["ruby", "Open"])
    begin
      db.exec("update write.tasks set status = 'None' where name = 'ruby'")
    rescue PG::Error => error
      puts error.result.error_field(PG::PG_DIAG_SQLSTATE)
    end`,
    await writerUrl(),
  ]);
  expect(said).toBe("23514");
  expect(madeBy("ruby")).toEqual([["ruby", "Open"]]);
});

test.skipIf(!Bun.which("java") || !existsSync(JDBC))("JDBC", async () => {
  const file = join(scratchFolder("jdbc"), "Write.java");
  writeFileSync(
    file,
    `
    import java.sql.*;
    public class Write {
      public static void main(String[] args) throws Exception {
        try (Connection db = DriverManager.getConnection(args[0], args[1], args[2])) {
          db.setAutoCommit(false);
          db.createStatement().executeUpdate("insert into write.tasks (name) values ('java gone')");
          db.rollback();
          PreparedStatement made = db.prepareStatement("insert into write.tasks (name, status) values (?, ?)");
          for (String name : new String[] {"java 1", "java 2"}) {
            made.setString(1, name); made.setString(2, "Open"); made.addBatch();
          }
          made.executeBatch();
          db.commit();
          db.createStatement().executeUpdate("update write.tasks set status = 'None' where name = 'java 1'");
          try { db.commit(); } catch (SQLException error) { System.out.println(error.getSQLState()); }
        }
      }
    }`,
  );
  const { host, pathname, username, password } = new URL(await writerUrl());
  const said = await run([
    "java",
    "-cp",
    JDBC,
    file,
    `jdbc:postgresql://${host}${pathname}`,
    username,
    decodeURIComponent(password),
  ]);
  expect(said).toBe("23514");
  expect(madeBy("java")).toEqual([
    ["java 1", "Open"],
    ["java 2", "Open"],
  ]);
});
