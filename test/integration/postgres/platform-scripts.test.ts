/**
 * The scripts of `docs/platforms` are run as the admin of a managed server runs them, and are sufficient for a replica.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import { installReplica } from "../../../core/replica";
import { type PostgresServer, postgresServer } from "../../support/servers/postgres-server";
import { repoRoot } from "../../support/source-files";

const FOLDER = join(repoRoot, "docs/platforms");
const pages = readdirSync(FOLDER).filter((name) => name !== "README.md");
const ROLE = "basetide";

let servers: PostgresServer[];
beforeAll(async () => {
  // Roles' rights to the roles that they create differ from version 16 on.
  servers = await Promise.all((["15", "18"] as const).map((version) => postgresServer({ version })));
  for (const server of servers) {
    await server.role("admin", "createdb createrole");
    await server.run(["alter database postgres owner to admin", "create role authenticated"]);
  }
}, 120_000);
afterAll(async () => {
  for (const server of servers ?? []) await server[Symbol.asyncDispose]();
});

test.each(pages)(
  "the script of %s creates a role that can create a replica, and that reads nothing else",
  async (page) => {
    const text = readFileSync(join(FOLDER, page), "utf8");
    const script = scriptOf(text);
    // From the URL that the page shows.
    const database = /^postgres:\/\/\S+\/(\w+)\?/m.exec(text)![1]!;
    for (const server of servers) {
      if (database !== "postgres") await server.run([`create database ${database} owner admin`]);
      await server.run(["create table public.orders (id int)"], database);
      await run(server.as("admin", database), script);
      const url = Object.assign(new URL(server.as(ROLE, database)), { password: "change-me" }).href;
      await installReplica(url, { schema: "airtable" });
      await expect(run(url, "select * from airtable._sync_meta")).resolves.toBeDefined();
      await expect(run(url, "select * from public.orders")).rejects.toMatchObject({ code: "42501" });
      await server.run(["drop table public.orders", `drop owned by ${ROLE} cascade`], database);
      if (database !== "postgres") await server.run([`drop database ${database} with (force)`]);
      await server.run([`drop role ${ROLE}`]);
    }
  },
);

/** All of the page's SQL. */
function scriptOf(page: string): string {
  return [...page.matchAll(/^```sql\n(.*?)^```/gms)].map(([, block]) => block!).join("\n");
}

async function run(url: string, statements: string): Promise<unknown> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    return await sql.unsafe(statements);
  } finally {
    await sql.end({ timeout: 1 });
  }
}
