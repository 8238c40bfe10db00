/** SQL writes from other clients than postgres.js, unchanged: a rollback, a commit, and Airtable's error. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { drizzle } from "drizzle-orm/node-postgres";
import { pgSchema, text } from "drizzle-orm/pg-core";
import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { errorOf } from "../../support/error-of";
import type { ProxyStack } from "../../support/proxy-stack";
import { scratchFolder } from "../../support/scratch";
import { writableTasks, writeStack } from "../../support/sql-writes";

const JDBC = "/usr/share/java/postgresql.jar";

let stack: ProxyStack;
let at: Awaited<ReturnType<typeof writableTasks>>;

beforeAll(async () => {
  stack = await writeStack();
  at = await writableTasks(stack, 0);
});
afterAll(() => stack?.[Symbol.asyncDispose]());

async function writerUrl(): Promise<string> {
  return (await at.writer()).url;
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

test.skipIf(!Bun.which("ruby") || Bun.spawnSync(["ruby", "-e", "require 'pg'"]).exitCode !== 0)(
  "Ruby's pg",
  async () => {
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
  },
);

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
