/**
 * An upgrade as docs/upgrade.md describes it: to a next version, made for the test, with one more migration, other functions
 * and other SQL in replicas; role by role, while clients write, readers query and Airtable changes. And back again.
 */
import { appendFileSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { stageApp } from "../../../deploy/image/stage";
import { isWholeDelivery } from "../../support/delivery";
import { type Fleet, startFleet } from "../../support/fleet";
import { until } from "../../support/poll";
import { type Program, startProgram } from "../../support/program";
import { repoRoot } from "../../support/source-files";

const ROLES = ["worker", "proxy", "console"] as const;
type Role = (typeof ROLES)[number];

/** Cycles of each load that must have happened after the last process was replaced. */
const CYCLES = isWholeDelivery ? 3 : 1;

/** Writes the next version into `folder`: as this one, with all that a release may change in databases. */
function makeNextVersion(folder: string): void {
  stageApp(folder);
  symlinkSync(join(repoRoot, "node_modules"), join(folder, "node_modules"));
  const raise = (path: string) => {
    const text = readFileSync(join(folder, path), "utf8");
    const raised = text.replace(
      /^const REVISION = (\d+);$/m,
      (_, revision) => `const REVISION = ${+revision + 1};`,
    );
    expect(raised).not.toBe(text);
    writeFileSync(join(folder, path), raised);
  };
  writeFileSync(
    join(folder, "sql/control/migrations/9000_next.sql"),
    "create table next_things (id text primary key);\nalter table bases add next_note text not null default '';\n",
  );
  writeFileSync(
    join(folder, "sql/control/functions/next-version.sql"),
    "create or replace function next_version() returns int language sql as 'select 1';\n",
  );
  raise("core/control/setup/functions.ts");
  appendFileSync(
    join(folder, "sql/replica/pins.sql"),
    "\ncreate or replace function {{swap}}.next_version() returns int language sql as 'select 1';\n",
  );
  raise("core/replica/install.ts");
}

/** The processes of the service, each of which can be replaced by one of another version. */
class Service implements AsyncDisposable {
  readonly #running = new Map<Role, Program>();
  readonly #addresses = new Map<Role, string>();
  /** What all processes have logged. */
  readonly programs: Program[] = [];

  constructor(readonly fleet: Fleet) {}

  environment(): Record<string, string> {
    const { config } = this.fleet.ctx;
    return {
      DATABASE_URL: config.databaseUrl!,
      REPLICA_URL: config.replicaUrl!,
      SECRET_KEY: config.secretKey!,
      UPSTREAMS: `api.airtable.com=${this.fleet.sandbox.url},content.airtable.com=${this.fleet.sandbox.url}`,
      ...{ WORKER_PORT: "0", PROXY_PORT: "0", CONSOLE_PORT: "0", HOST: "127.0.0.1", LOG_LEVEL: "info" },
    };
  }

  /**
   * Sends a request as a load balancer does: to the latest process of the role. If that has ended before it could connect, to
   * the next one.
   */
  async send(role: Role, path: string, init?: RequestInit): Promise<Response> {
    for (;;) {
      const address = this.#addresses.get(role)!;
      try {
        return await fetch(`${address}${path}`, init);
      } catch (error) {
        const { code } = error as { code?: string };
        if (code !== "ECONNREFUSED" || address === this.#addresses.get(role)) throw error;
      }
    }
  }

  /** Starts the role from `folder`, sends requests to it, and only then ends the one before. */
  async replace(role: Role, folder: string): Promise<void> {
    const next = startProgram(join(folder, "apps/main.ts"), [role], this.environment());
    this.programs.push(next);
    await next.says('"msg":"started"');
    const port = new RegExp(`"port":(\\d+).*"${role} listening"|"${role} listening".*"port":(\\d+)`).exec(
      next.output(),
    );
    // A worker has no clients.
    if (port) this.#addresses.set(role, `http://127.0.0.1:${port[1] ?? port[2]}`);
    const previous = this.#running.get(role);
    this.#running.set(role, next);
    if (!previous) return;
    previous.kill("SIGTERM");
    expect(await previous.exited, previous.output()).toBe(0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.programs.map((program) => program[Symbol.asyncDispose]()));
  }
}

const PACED = { what: "the load that sets the pace goes on", timeoutMs: 60_000, intervalMs: 5 };

/**
 * Repeats `cycle` until it is stopped, and keeps what went wrong.
 *
 * @param pace a number that must have changed since the cycle before
 */
function repeated(cycle: (nth: number) => Promise<void>, pace?: () => number) {
  const errors: unknown[] = [];
  let count = 0;
  let isStopped = false;
  const run = (async () => {
    for (; !isStopped; count++) {
      const from = pace?.();
      await cycle(count).catch((error) => errors.push(error));
      const isDue = () => isStopped || pace?.() !== from;
      if (pace) await until(isDue, PACED).catch((error) => errors.push(error));
    }
  })();
  return {
    errors,
    count: () => count,
    async stop() {
      isStopped = true;
      await run;
    },
  };
}

test("an upgrade and the way back, role by role under load, are without an error for clients, readers and syncs", {
  timeout: 300_000,
}, async () => {
  const next = mkdtempSync(join(tmpdir(), "basetide-next-"));
  try {
    makeNextVersion(next);
    await using fleet = await startFleet({ workers: 0 });
    const { ctx, sandbox } = fleet;
    await using service = new Service(fleet);
    for (const role of ROLES) await service.replace(role, repoRoot);

    const sourceId = sandbox.control.createBase({
      tables: [
        {
          name: "Items",
          fields: [{ name: "Name", type: "singleLineText" }],
          records: [{ fields: { Name: "written" } }, { fields: { Name: "edited" } }],
        },
      ],
    });
    const base = await fleet.synced((await fleet.connect(sourceId)).id);
    const rows = await fleet.reader(base);
    const found = await rows<{ id: string; name: string }[]>`select id, name from items`;
    const idOf = (name: string) => found.find((row) => row.name === name)!.id;
    const [written, edited] = [idOf("written"), idOf("edited")];
    const nameOf = async (id: string) => (await rows`select name from items where id = ${id}`)[0]?.name;

    // A change in Airtable arrives, whichever worker holds the base.
    const sync = repeated(async (nth) => {
      sandbox.control.updateRecords(sourceId, "Items", [{ id: edited, fields: { Name: `edited ${nth}` } }]);
      const hasArrived = async () => (await nameOf(edited)) === `edited ${nth}`;
      await until(hasArrived, { what: `edit ${nth} is in SQL`, timeoutMs: 30_000 });
    });
    // A write through the proxy is in SQL before its answer. One for each sync, which needs its part of the rate limit.
    const client = repeated(async (nth) => {
      const response = await service.send("proxy", `/api.airtable.com/v0/${sourceId}/Items/${written}`, {
        method: "PATCH",
        headers: { authorization: `Bearer ${sandbox.key}`, "content-type": "application/json" },
        body: JSON.stringify({ fields: { Name: `written ${nth}` } }),
      });
      expect([response.status, response.headers.get("x-basetide-sql")]).toEqual([200, null]);
      expect(await nameOf(written)).toBe(`written ${nth}`);
    }, sync.count);
    const pages = repeated(async () => {
      expect((await service.send("console", "/readyz")).status).toBe(200);
      expect((await service.send("console", "/signup")).status).toBe(200);
    });
    const reader = repeated(async () => {
      const [row] = await rows`select count(*)::int as rows from items`;
      expect(row!.rows).toBe(2);
    }, pages.count);
    const loads = { sync, client, pages, reader };
    const goOn = async (what: string) => {
      const from = Object.values(loads).map(({ count }) => count() + CYCLES);
      const haveGoneOn = () => Object.values(loads).every(({ count }, index) => count() >= from[index]!);
      const failed = () => Object.entries(loads).filter(([, { errors }]) => errors.length > 0);
      await until(() => failed().length > 0 || haveGoneOn(), {
        what: `all go on ${what}`,
        timeoutMs: 60_000,
      });
      for (const [name, { errors }] of failed()) expect(errors, `${name} ${what}`).toEqual([]);
    };
    const owner = await fleet.owner(base);
    const isNext = async () => {
      const [row] = await ctx.db`
        select to_regclass('next_things') is not null as migrated, to_regproc('next_version') is not null as functions`;
      const [replica] = await owner`select to_regproc('public_swap.next_version') is not null as yes`;
      return [row!.migrated, row!.functions, replica!.yes];
    };
    try {
      await goOn("before the upgrade");
      expect(await isNext()).toEqual([false, false, false]);

      const migrate = startProgram(
        join(next, "apps/main.ts"),
        ["operator", "server", "migrate"],
        service.environment(),
      );
      service.programs.push(migrate);
      expect(await migrate.exited, migrate.errors()).toBe(0);
      expect(await isNext()).toEqual([true, true, false]);
      await goOn("after the migration");
      for (const role of ROLES) {
        await service.replace(role, next);
        await goOn(`with the next ${role}`);
      }
      await until(async () => (await isNext()).every(Boolean), { what: "the replica's SQL is the next one" });

      for (const role of isWholeDelivery ? ROLES.toReversed() : []) {
        await service.replace(role, repoRoot);
        await goOn(`back with this ${role}`);
      }
      // Nothing is taken back: this version works with what the next one has installed.
      expect(await isNext()).toEqual([true, true, true]);
    } finally {
      await Promise.all(Object.values(loads).map((load) => load.stop()));
    }
    for (const [name, { errors }] of Object.entries(loads)) expect(errors, name).toEqual([]);
    expect(
      await ctx.db`select error_code, error_message from sync_runs where error_code is not null`,
    ).toEqual([]);
    const logged = service.programs.flatMap((program) => program.output().split("\n"));
    expect(logged.filter((line) => /"level":(50|60)\b/.test(line))).toEqual([]);
  } finally {
    rmSync(next, { recursive: true, force: true });
  }
});
