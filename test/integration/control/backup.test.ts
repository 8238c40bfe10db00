/** The commands of "Backup and restore" in docs/operations.md, run as they stand there: what they restore is all there was. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { expect, test } from "vitest";
import { examineEncryption, pendingMigrations } from "../../../core/control/setup";
import { startFleet } from "../../support/fleet";
import { postgresServer } from "../../support/servers/postgres-server";
import { repoRoot } from "../../support/source-files";

/** Debian's tools, which dump servers of their own version and older ones. */
const VERSION = "15";
const missing = ["pg_dump", "pg_restore", "psql"].filter((name) => Bun.which(name) === null);

/** The line of the page that begins with the program, without its comment. */
function documented(program: string, page = "operations"): string {
  const text = readFileSync(join(repoRoot, `docs/${page}.md`), "utf8");
  const [line] = new RegExp(`^${program} .*?(?= +#|$)`, "m").exec(text) ?? [];
  expect(line, program).toBeDefined();
  return line!;
}

/** Runs a line of the shell. @throws with what it wrote to standard error */
function shell(line: string, cwd: string, databaseUrl: string): void {
  const env = { ...process.env, DATABASE_URL: databaseUrl };
  const { exitCode, stderr } = Bun.spawnSync(["sh", "-c", line], { cwd, env });
  expect(exitCode, stderr.toString()).toBe(0);
}

/** All rows of all tables, by table. */
async function contents(sql: postgres.Sql): Promise<Record<string, unknown>> {
  const tables = await sql<{ name: string }[]>`
    select format('%I.%I', schemaname, tablename) as name from pg_tables
    where schemaname not in ('pg_catalog', 'information_schema') order by 1`;
  const rows = tables.map(async ({ name }) => {
    const found = await sql.unsafe(`select to_jsonb(t)::text as row from ${name} t order by 1`);
    return [name, found.map(({ row }) => row)];
  });
  return Object.fromEntries(await Promise.all(rows));
}

test("a dump of the control plane restores all rows, functions and secrets, and its time is recorded", {
  timeout: 180_000,
}, async ({ skip }) => {
  skip(missing.length > 0, `this machine has no ${missing.join(", ")}`);
  const folder = mkdtempSync(join(tmpdir(), "basetide-backup-"));
  try {
    await using server = await postgresServer({ version: VERSION });
    const url = await server.role("basetide_control", "", "basetide");
    const urlOfRestored = url.replace(/\/basetide$/, "/restored");
    for (const name of ["basetide", "restored"])
      await server.run([`create database ${name} owner basetide_control template template0`]);
    await using fleet = await startFleet({ databaseUrl: url, workers: 0 });
    const { ctx, sandbox } = fleet;
    await fleet.connect(sandbox.control.generate({ records: 3, tables: 1, seed: 1 }));
    const before = await contents(ctx.db);
    expect(before["public.bases"]).toHaveLength(1);

    shell(documented("pg_dump"), folder, url);
    const [row] = await ctx.db`select backed_up_at > now() - interval '1 minute' as yes from installation`;
    expect(row!.yes, "the time of the backup is recorded").toBe(true);
    await ctx.db`update installation set backed_up_at = null`;
    // The command of an upgrade is the same, but for the file's name.
    shell(documented("pg_dump", "upgrade"), folder, url);
    const [upgrade] = await ctx.db`select backed_up_at is not null as yes from installation`;
    expect(upgrade!.yes).toBe(true);
    shell(documented("pg_restore"), folder, urlOfRestored);

    await using restored = disposable(postgres(urlOfRestored, { onnotice: () => {} }));
    expect(await contents(restored.sql)).toEqual(before);
    expect(await pendingMigrations(restored.sql)).toEqual([]);
    const secrets = await examineEncryption({ ...ctx, db: restored.sql });
    expect(secrets).toMatchObject({ previous: 0, unreadable: 0 });
    expect(secrets.readable).toBeGreaterThan(0);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

function disposable(sql: postgres.Sql) {
  return { sql, [Symbol.asyncDispose]: () => sql.end({ timeout: 1 }) };
}
