/**
 * The units of `deploy/systemd`: what systemd says about them, where it is installed, and what they start. Nothing here can
 * run them: that needs systemd as the first process.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { configVariables, readConfig } from "../../../core/config";
import { freshDatabase } from "../../support/database";
import { startProgram } from "../../support/program";
import { repoRoot } from "../../support/source-files";

const ROLES = ["all", "console", "proxy", "worker"];
/** The highest exposure that `systemd-analyze security` may report, in tenths; it calls units up to 20 "OK". */
const MAX_EXPOSURE = 15;

const units = join(repoRoot, "deploy/systemd");
const analyzer = Bun.which("systemd-analyze");
let folder: string;

/** The units with this machine's Bun in place of the installed one. */
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "basetide-units-"));
  for (const role of ROLES) {
    const text = readFileSync(join(units, nameOf(role)), "utf8");
    writeFileSync(join(folder, nameOf(role)), text.replace("/usr/local/bin/bun", process.execPath));
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function nameOf(role: string): string {
  return `basetide-${role}.service`;
}

/** The values of a unit's setting, in the order of its lines. */
function valuesOf(role: string, setting: string): string[] {
  const text = readFileSync(join(units, nameOf(role)), "utf8");
  return [...text.matchAll(new RegExp(`^${setting}=(.*)$`, "gm"))].map(([, value]) => value!);
}

function analyze(words: string[]): { code: number; said: string } {
  const { exitCode, stdout, stderr } = Bun.spawnSync([analyzer!, ...words], {
    env: { ...process.env, SYSTEMD_COLORS: "0" },
  });
  return { code: exitCode, said: `${stdout}${stderr}` };
}

test("there is one unit per role, and they differ only in it", () => {
  expect(readdirSync(units).sort()).toEqual(ROLES.map(nameOf));
  const [first, ...others] = ROLES.map((role) =>
    readFileSync(join(units, nameOf(role)), "utf8")
      .replace(/^Description=.*$/m, "")
      .replace(`apps/main.ts ${role}\n`, "apps/main.ts\n"),
  );
  for (const other of others) expect(other).toBe(first);
});

test.for(ROLES)("systemd finds no fault in the unit of %s, and little exposure", (role, { skip }) => {
  skip(!analyzer, "this machine has no systemd-analyze");
  const unit = join(folder, nameOf(role));
  expect(analyze(["verify", unit])).toEqual({ code: 0, said: "" });
  const { code, said } = analyze(["security", "--offline=true", `--threshold=${MAX_EXPOSURE}`, unit]);
  expect(code, said).toBe(0);
});

test("a unit sets known variables only, and its secrets are files", () => {
  const runtime = ["MIMALLOC_PURGE_HOLES_MIN_INTERVAL", "MIMALLOC_PURGE_DELAY", "BUN_GC_TIMER_INTERVAL"];
  const known = new Set([...Object.keys(configVariables), ...runtime]);
  const set = valuesOf("all", "Environment").flatMap((line) =>
    line.split(" ").map((one) => one.split("=")[0]!),
  );
  expect(set.filter((name) => !known.has(name))).toEqual([]);
  const dockerfile = readFileSync(join(repoRoot, "Dockerfile"), "utf8");
  const lines = valuesOf("all", "Environment").join(" ");
  for (const name of runtime)
    expect(lines).toContain(new RegExp(`${name}=\\d+`).exec(dockerfile)?.[0] ?? "in the Dockerfile");
  const credentials = valuesOf("all", "LoadCredential").map((line) => line.split(":"));
  expect(credentials.map(([name]) => name)).toEqual(["DATABASE_URL", "REPLICA_URL", "SECRET_KEY"]);
  for (const [name, path] of credentials) expect(path).toBe(`/etc/basetide/credentials/${name}`);
  for (const setting of ["DynamicUser=yes", "ProtectSystem=strict"])
    expect(readFileSync(join(units, nameOf("all")), "utf8")).toContain(`\n${setting}\n`);
});

test("the command of the unit starts, with its secrets in files and not in its environment", async () => {
  await using database = await freshDatabase();
  const credentials = join(folder, "credentials");
  mkdirSync(credentials);
  const secrets: Record<string, string> = {
    DATABASE_URL: database.url,
    REPLICA_URL: inject("clusterUrl"),
    SECRET_KEY: Buffer.alloc(32, 1).toString("base64"),
  };
  for (const [name, value] of Object.entries(secrets)) writeFileSync(join(credentials, name), `${value}\n`);
  const [command = ""] = valuesOf("all", "ExecStart");
  const [bun, option, script, ...words] = command.split(" ");
  expect([bun, option]).toEqual(["/usr/local/bin/bun", "--no-env-file"]);
  const unset = Object.fromEntries(Object.keys(secrets).map((name) => [name, undefined]));
  await using program = startProgram(
    script!,
    words,
    {
      ...unset,
      ...{ CREDENTIALS_DIRECTORY: credentials, NODE_ENV: "production", DATA_DIR: join(folder, "state") },
      ...{ WORKER_PORT: "0", PROXY_PORT: "0", CONSOLE_PORT: "0", LOG_LEVEL: "info" },
    },
    [option!],
  );
  await program.says('"msg":"started"');
  program.kill("SIGTERM");
  expect(await program.exited).toBe(0);
});

test("a variable that is set wins over its file; an empty file counts as unset; one that cannot be read is named", () => {
  const credentials = mkdtempSync(join(folder, "read-"));
  const read = (env: Record<string, string> = {}) =>
    readConfig({ CREDENTIALS_DIRECTORY: credentials, ...env });
  writeFileSync(join(credentials, "DATABASE_URL"), " postgres://file@127.0.0.1/one\n");
  writeFileSync(join(credentials, "REPLICA_URL"), "\n");
  expect(read()).toMatchObject({ databaseUrl: "postgres://file@127.0.0.1/one", replicaUrl: undefined });
  // Set and empty, as an unset variable is passed on.
  expect(read({ DATABASE_URL: "" }).databaseUrl).toBe("postgres://file@127.0.0.1/one");
  const databaseUrl = "postgres://set@127.0.0.1/two";
  expect(read({ DATABASE_URL: databaseUrl }).databaseUrl).toBe(databaseUrl);
  expect(read({ DATABASE_URL: databaseUrl, CREDENTIALS_DIRECTORY: "" }).databaseUrl).toBe(databaseUrl);
  writeFileSync(join(credentials, "SECRET_KEY"), "short");
  expect(() => read()).toThrow("SECRET_KEY: must be 32 bytes in base64");
  rmSync(join(credentials, "SECRET_KEY"));
  mkdirSync(join(credentials, "SECRET_KEY"));
  expect(() => read()).toThrow(/^SECRET_KEY: .*cannot be read/);
});
