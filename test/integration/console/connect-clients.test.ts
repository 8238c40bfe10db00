/** The programs on the page "Connect", run unchanged: with a server that offers TLS, and one that does not. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { offeredSslMode } from "../../../apps/console/tls-offers";
import { qualifiedName } from "../../../core/exports";
import { type ClientId, clients, guideOf, type SqlAccess } from "../../../views/base/connect-clients";
import { createAuthority } from "../../support/certificates";
import { ownDatabase } from "../../support/control-support";
import { node } from "../../support/node";
import { tlsRelay } from "../../support/servers/tls-relay";
import { repoRoot } from "../../support/source-files";
import { ofDebian, pinned, runs, type Tool } from "../../support/tools/table";

const GO_PATH = "/usr/share/gocode";
/** Debian has version 4, with the same functions. */
const DEBIAN_PGX = "github.com/jackc/pgx/v4";
/** Debian's, whose packages are the drivers. */
const PYTHON = "/usr/bin/python3";
const JDBC_DRIVER = "/usr/share/java/postgresql.jar";
const TIMEOUT_MS = 120_000;
/** A schema and a table that have to be quoted in SQL, in each language and in a shell. */
const SCHEMA = "my schema";
const TABLE = "order \"#{1}` $x 'y'";

let releases: AsyncDisposableStack;
let folder: string;
const servers = new Map<string, SqlAccess>();

beforeAll(async () => {
  releases = new AsyncDisposableStack();
  const own = releases.use(await ownDatabase(inject("postgresUrl")));
  const table = qualifiedName(SCHEMA, TABLE);
  await own.inside.unsafe(
    `create schema "${SCHEMA}"; create table ${table} (id text, created_time timestamp, day date);
    insert into ${table} values ('recFOUND1', '2026-03-08 02:30:00', '2026-07-01')`,
  );
  await own.inside.unsafe(`alter database "${own.name}" set timezone = 'Australia/Lord_Howe'`);
  await own.inside.unsafe(
    `grant usage on schema "${SCHEMA}" to ${own.name}; grant select on ${table} to ${own.name}`,
  );
  const { hostname, port } = new URL(own.url);
  const certificate = createAuthority("test").issue(["localhost", "127.0.0.1"]);
  const relay = releases.use(await tlsRelay({ host: hostname, port: Number(port) }, { certificate }));
  const at = async (host: string, port: number) => ({
    host,
    port,
    database: own.name,
    user: own.name,
    password: "s/e:cret",
    schema: SCHEMA,
    sslMode: await offeredSslMode(host, port),
    parameters: {},
    table,
  });
  servers.set("without TLS", await at(hostname, Number(port)));
  servers.set("with TLS", await at("127.0.0.1", relay.port));
  // Inside the repository, so that packages are found.
  folder = mkdtempSync(join(repoRoot, ".connect-"));
  releases.defer(() => rmSync(folder, { recursive: true }));
});
afterAll(() => releases.disposeAsync());

interface Installed {
  /** The command after the environment was set, in the folder of the program. */
  command: string;
  /** Why it cannot be run here. */
  missing?: string | false;
}

const succeeds = (...words: string[]) => Bun.which(words[0]!) !== null && Bun.spawnSync(words).exitCode === 0;

const installed: Partial<Record<ClientId, () => Installed>> = {
  psql: () => ({ command: "", missing: !Bun.which("psql") && "there is no psql" }),
  "postgres-js": () => ({ command: `${node} rows.mjs`, missing: node === undefined && "there is no Node" }),
  pg: () => ({ command: `${node} rows.mjs`, missing: node === undefined && "there is no Node" }),
  python: () => ({
    command: `${PYTHON} rows.py`,
    missing: !succeeds(PYTHON, "-c", "import psycopg") && "python3-psycopg is not installed",
  }),
  go: () => ({
    command: `GO111MODULE=off GOPATH=${GO_PATH} GOCACHE=${join(folder, "go-cache")} go run main.go`,
    missing:
      !(Bun.which("go") && existsSync(join(GO_PATH, "src", DEBIAN_PGX))) &&
      "Go or golang-github-jackc-pgx-v4-dev is missing",
  }),
  ruby: () => ({
    command: "ruby rows.rb",
    missing: !succeeds("ruby", "-e", "require 'pg'") && "ruby-pg is not installed",
  }),
  jdbc: () => ({
    command: `java -cp ${JDBC_DRIVER} Rows.java`,
    missing:
      !(Bun.which("javac") && existsSync(JDBC_DRIVER)) && "libpostgresql-jdbc-java or a JDK is missing",
  }),
};

test("a server is asked whether it offers TLS, and one that does not answer leaves it to the client", async () => {
  expect([...servers.values()].map(({ sslMode }) => sslMode)).toEqual(["disable", "require"]);
  expect(await offeredSslMode("127.0.0.1", 1)).toBeNull();
});

/** The time is skipped by the clocks of the first one, and the day begins before that of UTC in the second one. */
const ZONES = ["America/New_York", "Asia/Kolkata", ...(process.env.TOOLS ? ["UTC", "Pacific/Apia"] : [])];
const sameTime = `select count(*) from ${qualifiedName(SCHEMA, TABLE)} where created_time =`;
const sameInJs = JSON.stringify(`${sameTime} $1`);
const PRINTED = "2026-03-08T02:30:00Z 2026-07-01 1";

/** Statements in the place of the one that prints the rows: they print the time, the day, and how many rows have this time. */
const checks: Partial<Record<ClientId, [string | RegExp, string]>> = {
  "postgres-js": [
    "console.table(rows);",
    `const [same] = await sql.unsafe(${sameInJs}, [rows[0].created_time]);
     console.log(rows[0].created_time.toISOString().replace(".000", ""), rows[0].day, same.count);`,
  ],
  pg: [
    "console.table(rows);",
    `const same = await client.query(${sameInJs}, [rows[0].created_time]);
     console.log(rows[0].created_time.toISOString().replace(".000", ""), rows[0].day, same.rows[0].count);`,
  ],
  python: [
    "        print(row)",
    `        same = connection.execute(${JSON.stringify(`${sameTime} %s`)}, [row[1]]).fetchone()
        print(row[1].astimezone(timezone.utc).isoformat().replace("+00:00", "Z"), row[2].isoformat(), same[0])`,
  ],
  ruby: [
    "{ |row| puts row }",
    `do |row|
      same = connection.exec_params(${JSON.stringify(`${sameTime} $1`).replaceAll("#", "\\#")}, [row["created_time"]]).getvalue(0, 0)
      puts "#{row["created_time"].getutc.strftime("%FT%TZ")} #{row["day"]} #{same}"
    end`,
  ],
  jdbc: [
    'System.out.println(rows.getString("id"));',
    `{
      var same = connection.prepareStatement(${JSON.stringify(`${sameTime} ?`)});
      same.setTimestamp(1, rows.getTimestamp("created_time"));
      var count = same.executeQuery();
      count.next();
      System.out.println(rows.getTimestamp("created_time").toInstant() + " " + rows.getDate("day") + " " + count.getString(1));
    }`,
  ],
};

for (const [id, zone] of ZONES.flatMap((zone) =>
  Object.keys(checks).map((id) => [id as ClientId, zone] as const),
)) {
  test(`${id} has the time and the day in ${zone}`, runOf(id), async ({ skip }) => {
    const { command, missing } = installed[id]!();
    skip(Boolean(missing), String(missing));
    const { secrets, program } = guideOf(id, servers.get("without TLS")!);
    const [print, check] = checks[id]!;
    const code = program!.code.replace(print, () => check);
    expect(code).not.toBe(program!.code);
    const { output, errors } = await runProgram(
      `zone-${id}-${zone.replace("/", "-")}`,
      { file: program!.file, code },
      `${secrets![0]!.value}\n${command}`,
      { TZ: zone },
    );
    expect([output.trim(), errors]).toEqual([PRINTED, ""]);
  });
}

/** Without TLS, most have read the row in each zone. */
const cases = (Object.keys(installed) as ClientId[]).flatMap((id) =>
  (checks[id] ? ["with TLS"] : ["without TLS", "with TLS"]).map((server) => [id, server] as const),
);

for (const [id, server] of cases) {
  test(`${id} reads a row ${server}`, runOf(id), async ({ skip }) => {
    const { command, missing } = installed[id]!();
    skip(Boolean(missing), String(missing));
    const { secrets, program } = guideOf(id, servers.get(server)!);
    const [, sql] = /^\\dt.*\n([\s\S]*)$/.exec(program!.code) ?? [];
    const script = id === "psql" ? `${secrets![0]!.value} -f query.sql` : `${secrets![0]!.value}\n${command}`;
    const written = id === "psql" ? { file: "query.sql", code: sql! } : program!;
    const { code, output, errors } = await runProgram(`${id}-${server}`, written, script);
    expect([code, errors.trim() && `${errors}${output}`, output]).toEqual([
      0,
      expect.not.stringContaining("rror"),
      expect.stringContaining("recFOUND1"),
    ]);
  });
}

function runOf(id: ClientId) {
  const tools: Partial<Record<ClientId, Tool>> = {
    psql: ofDebian("postgresql-client-15", "psql"),
    "postgres-js": pinned(repoRoot, "postgres", "postgres.js"),
    pg: pinned(repoRoot, "pg", "node-postgres"),
    python: ofDebian("python3-psycopg", "psycopg"),
    go: ofDebian("golang-github-jackc-pgx-v4-dev", "pgx for Go"),
    ruby: ofDebian("ruby-pg", "pg for Ruby"),
    jdbc: ofDebian("libpostgresql-jdbc-java", "JDBC driver: times in four zones"),
  };
  return { ...runs(tools[id]!), timeout: TIMEOUT_MS };
}

/** Runs a script next to the program, in a folder of its own. */
async function runProgram(
  name: string,
  { file, code }: { file: string; code: string },
  script: string,
  env: Record<string, string> = {},
) {
  const inside = join(folder, name);
  mkdirSync(inside);
  writeFileSync(join(inside, file), code.replace("github.com/jackc/pgx/v5", DEBIAN_PGX));
  const child = Bun.spawn(["sh", "-c", script], {
    cwd: inside,
    env: { ...process.env, ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, errors] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { code: await child.exited, output, errors };
}

test("every client has a guide that shows where to connect, and the password only where it is masked", () => {
  const access = servers.get("with TLS")!;
  for (const id of Object.keys(clients) as ClientId[]) {
    const { secrets = [], fields = [], steps = [], install = "", program } = guideOf(id, access);
    const open = JSON.stringify([fields, steps, install, program]);
    expect([
      id,
      open.includes(access.password) || open.includes(encodeURIComponent(access.password)),
    ]).toEqual([id, false]);
    const all = `${JSON.stringify(secrets)}${open}`;
    expect([id, all.includes(access.host) && all.includes(String(access.port))]).toEqual([id, true]);
  }
});
