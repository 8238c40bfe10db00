/**
 * An account moves from one control plane to another: all of its rows, with secrets that the other key opens, and
 * whatever interrupts the move.
 */
import { symmetricDecrypt } from "better-auth/crypto";
import postgres from "postgres";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import {
  abortMove,
  findMovingAccount,
  moveAccount,
  type PlaneContext,
  planMove,
} from "../../../core/control/account-move";
import { movedTables } from "../../../core/control/account-move/catalog";
import { readAccountRows } from "../../../core/control/account-move/rows";
import { accountScopeOf } from "../../../core/control/account-move/scope";
import { createAccount } from "../../../core/control/accounts";
import { deleteBase, getBase, listBases, updateSettings } from "../../../core/control/bases";
import { databaseCredentials, getDatabase } from "../../../core/control/placement";
import { contextOf, encryptedColumns } from "../../../core/control/setup";
import { numberedKeys } from "../../../core/secrets";
import { type AccountScene, accountScene } from "../../support/account-scene";
import { type TestControl, testControl } from "../../support/control-support";
import { hostedUrl } from "../../support/hosted-url";

vi.setConfig({ testTimeout: 120_000 });

const ACTOR = { kind: "cli", name: "operator" } as const;
const EMAIL = "moving@example.com";
let here: TestControl;
let there: TestControl;
let scene: AccountScene;
let source: PlaneContext;
let target: PlaneContext;
beforeAll(async () => {
  [here, there] = await Promise.all([testControl(), testControl()]);
  [source, target] = [
    { ...here.ctx, actor: ACTOR },
    { ...there.ctx, actor: ACTOR },
  ];
  scene = await accountScene(here, EMAIL, "member@example.com");
}, 120_000);
afterAll(async () => {
  await here?.[Symbol.asyncDispose]();
  await there?.[Symbol.asyncDispose]();
});

// No process has anything cached.
const options = { isMerging: false, proxyUrl: "https://proxy.target.example", drainMs: 100 };
const account = () => findMovingAccount(source, EMAIL);

/** Everything that the control plane has of the account, with its secrets decrypted, and without what a move changes. */
async function contents(plane: PlaneContext): Promise<Record<string, unknown[]>> {
  const shapes = await movedTables(plane.db);
  const rows = await readAccountRows(plane.db, shapes, await accountScopeOf(plane.db, scene.accountId));
  const columns = await encryptedColumns(plane);
  const keys = numberedKeys(plane.config, "sessions");
  const key = { keys: new Map(keys.map((k) => [k.version, k.value])), currentVersion: keys[0]!.version };
  const all: Record<string, unknown[]> = {};
  for (const { name, identity } of shapes) {
    const plain = rows.get(name)!.map(async ({ values }) => {
      const row: Record<string, unknown> = { ...values };
      for (const column of columns) {
        const value = row[column.column];
        if (column.table === name && typeof value === "string")
          row[column.column] = plane.secrets.decrypt(value, contextOf(column, String(row[column.key])));
      }
      if (name === "two_factors") row.secret = await symmetricDecrypt({ key, data: String(row.secret) });
      if (name === "two_factors")
        row.backup_codes = await symmetricDecrypt({ key, data: String(row.backup_codes) });
      if (identity !== null) delete row[identity];
      for (const changing of CHANGING[name] ?? []) delete row[changing];
      return row;
    });
    const kept = (await Promise.all(plain)).filter(
      ({ action, sync, client }) =>
        !String(action).startsWith("account.move") && !(sync === 0 && client === 0),
    );
    all[name] = kept.map((row) => JSON.stringify(row, Object.keys(row).sort())).sort();
  }
  return all;
}

/** Columns with another value after a move, or while nothing serves the account. */
const CHANGING: Record<string, string[]> = {
  bases: ["state", "resync_requested_at", "sql_writes_installed"],
  databases: ["cluster_id"],
  live_feeds: ["gap_since"],
  alert_notices: ["alert_id"],
  alert_states: ["cursor"],
};

async function statesIn({ db }: PlaneContext): Promise<string[]> {
  return (await listBases(db, scene.accountId)).map(({ state }) => state);
}

async function isServing(plane: PlaneContext): Promise<boolean> {
  return (await statesIn(plane)).some((state) => state !== "moving");
}

async function labelOf(name: string): Promise<string> {
  const sql = postgres(here.serverUrl, { max: 1, onnotice: () => {} });
  const [row] = await sql<{ label: string }[]>`
    select shobj_description(oid, 'pg_database') as label from pg_database where datname = ${name}`;
  await sql.end();
  return row!.label.split(" ")[1]!;
}

async function installation({ db }: PlaneContext): Promise<string> {
  return (await db<{ id: string }[]>`select id from installation`)[0]!.id;
}

/** Runs until the step, then throws, as if the process were killed there. */
function killedAt(step: string) {
  return {
    ...options,
    onStep: (name: string) => {
      if (name === step) throw new Error(`killed at ${step}`);
    },
  };
}

test("a move that cannot succeed changes nothing, and names the remedy", async () => {
  const before = await contents(source);
  await createAccount(there.ctx.db, { email: "owner-there@example.com", password: "correct horse" });
  await there.ctx.db`update users set email = ${EMAIL} where email = 'owner-there@example.com'`;
  const move = async (given = options, to = target) => moveAccount(source, to, await account(), given);
  await expect(move()).rejects.toThrow(/moving@example\.com.*--merge-users/);
  await expect(move({ ...options, isMerging: true })).rejects.toThrow(/owns one account at most/);
  await there.ctx.db`delete from accounts`;
  await there.ctx.db`delete from users`;
  await expect(move(options, { ...target, db: source.db, secrets: source.secrets })).rejects.toThrow(
    /--to is the/,
  );
  await expect(move(options, { ...target, secrets: source.secrets })).rejects.toThrow(
    /TARGET_SECRET_KEY is not/,
  );
  await there.ctx.db`delete from clusters`;
  await expect(move()).rejects.toThrow(/has not registered the cluster "default".*operator cluster add/);
  await registerCluster();
  await source.db`update bases set state = 'deleting' where id = ${scene.bases[0]!.id}`;
  await expect(move()).rejects.toThrow(/being deleted/);
  await source.db`update bases set state = 'starting' where id = ${scene.bases[0]!.id}`;
  expect(await contents(source)).toEqual(before);
  expect(await isServing(source)).toBe(true);
});

/** Registers the server in the target under another name and address than in the source. */
async function registerCluster(): Promise<void> {
  const { db } = there.ctx;
  const url = there.ctx.config.replicaUrl!;
  const id = "clu_0000000000000000there";
  await db`
    insert into clusters (id, name, region, encrypted_admin_url, public_host, public_port)
    values (${id}, 'shared', 'eu', ${there.ctx.secrets.encrypt(url, `clusters.admin_url:${id}`)}, 'db.example', 5432)`;
}

test("the plan counts the rows of every table that moves", async () => {
  const { plan } = await planMove(source, target, await account(), options);
  const moved = (await movedTables(source.db)).map(({ name }) => name);
  expect(Object.keys(plan.rows).sort()).toEqual(moved.sort());
  expect(plan).toMatchObject({ copiedPeople: ["member@example.com"], mergedPeople: [] });
  expect(plan.rows).toMatchObject({ bases: 2, users: 2, sync_runs: 600, schema_changes: 3 });
});

test("the command prints the plan, and moves nothing without a confirmation", async () => {
  const { config } = here.ctx;
  const child = Bun.spawn(
    [process.execPath, "apps/operator/main.ts", "account", "move", EMAIL, "--to-stdin"],
    {
      env: {
        PATH: process.env.PATH ?? "",
        DATABASE_URL: config.databaseUrl!,
        SECRET_KEY: config.secretKey!,
        DATA_DIR: config.dataDir,
        TARGET_SECRET_KEY: there.ctx.config.secretKey!,
      },
      stdin: Buffer.from(`${there.ctx.config.databaseUrl}\n`),
      stderr: "pipe",
    },
  );
  const [error, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  expect(error).toMatch(/account: moving@example\.com[\s\S]*Inventory[\s\S]*sync_runs: 600/);
  expect([code, error]).toEqual([1, expect.stringContaining("Confirm the move with --yes")]);
  expect(await isServing(source)).toBe(true);
});

test("a move that was killed with all rows in the target is aborted, whatever kills the abort", async () => {
  const before = await contents(source);
  await expect(moveAccount(source, target, await account(), killedAt("labelled before"))).rejects.toThrow(
    /killed/,
  );
  expect([await statesIn(source), await statesIn(target)]).toEqual([
    ["moving", "moving"],
    ["moving", "moving"],
  ]);
  const [base] = await listBases(source.db, scene.accountId);
  await expect(updateSettings(here.ctx, base!, { turbo: true })).rejects.toThrow(/being moved/);
  await expect(deleteBase(here.ctx, base!)).rejects.toThrow(/being moved/);
  for (const step of ["labelled", "removed"]) {
    await expect(abortMove(source, target, await account(), killedAt(step))).rejects.toThrow(/killed/);
    expect(await isServing(source)).toBe(false);
  }
  await abortMove(source, target, await account());
  expect(await statesIn(source)).toEqual(["active", "paused"]);
  expect(await contents(source)).toEqual(before);
  expect(await target.db`select from accounts where id = ${scene.accountId}`).toHaveLength(0);
  expect(await target.db`select from users`).toHaveLength(0);
  expect(await labelOf(base!.database.name)).toBe(await installation(source));
});

const STEPS = [
  "stopped",
  "drained",
  "fenced",
  "taken",
  "inserted",
  "labelled before",
  "moved",
  "labelled",
  "activated",
];

test("killed at each step and repeated, the move ends with everything in the target, and nothing in the source", async () => {
  const [one] = scene.bases;
  const url = (await databaseCredentials(source as never, await getDatabase(source.db, one!.database.id)))
    .url;
  const who = await account();
  await source.db`update bases set sql_writes = true, sql_writes_installed = 'of this one' where id = ${one!.id}`;
  const before = await contents(source);
  for (const step of STEPS) {
    await expect(moveAccount(source, target, who, killedAt(step))).rejects.toThrow(`killed at ${step}`);
    expect(await isServing(source)).toBe(false);
    expect([step, await isServing(target)]).toEqual([step, step === "activated"]);
  }
  await moveAccount(source, target, await account(), options);
  await expect(moveAccount(source, target, who, options)).rejects.toThrow(/moved already/);
  await expect(abortMove(source, target, who)).rejects.toThrow(/has the account already/);

  expect(await contents(target)).toEqual(before);
  expect(await statesIn(target)).toEqual(["active", "paused"]);
  expect(await target.db`select id from bases where sql_writes and sql_writes_installed is null`).toEqual([
    { id: one!.id },
  ]);
  const left = await contents(source);
  expect(Object.entries(left).filter(([, rows]) => rows.length > 0)).toEqual([]);
  expect(await source.db`select from users where id = ${scene.ownerId}`).toHaveLength(0);
  expect(await source.db`select from users where id = ${scene.memberId}`).toHaveLength(1);
  expect(await labelOf(one!.database.name)).toBe(await installation(target));

  const [notice] = await target.db<{ facts: unknown }[]>`
    select a.facts from alert_notices as n join alerts as a on a.id = n.alert_id`;
  expect(notice!.facts).toEqual({ n: 2 });
  const [state] = await target.db<{ unseen: number }[]>`
    select count(*)::int as unseen from schema_changes as c join alert_states as s on s.base_id = c.base_id
    where c.id > s.cursor`;
  expect(state!.unseen).toBe(1);
  const actions = async ({ db }: PlaneContext) =>
    (
      await db<
        { action: string }[]
      >`select action from audit_log where action like 'account.move%' order by id`
    ).map(({ action }) => action);
  expect(await actions(source)).toEqual(["account.moved_out"]);
  expect(await actions(target)).toContain("account.moved_in");

  // The same login for SQL, in the same place.
  expect(
    (await databaseCredentials(target as never, await getDatabase(target.db, one!.database.id))).url,
  ).toBe(url.replace(/@[^/]*\//, "@db.example:5432/"));
  const reader = postgres(hostedUrl(url), { max: 1, onnotice: () => {} });
  expect(await reader`select 1 as one`).toEqual([{ one: 1 }]);
  await reader.end();
});

test("an account moves back, and the base that it left is connected there again", async () => {
  const before = await contents(target);
  const [moved] = await source.db`select proxy_url from moved_bases`;
  expect(moved).toEqual({ proxy_url: options.proxyUrl });
  const who = await findMovingAccount(target, EMAIL);
  await moveAccount(target, source, who, { isMerging: false, drainMs: 100 });
  expect(await contents(source)).toEqual(before);
  expect(await source.db`select from moved_bases`).toHaveLength(0);
  expect(await target.db`select from moved_bases`).toHaveLength(2);
  expect((await getBase(source.db, scene.bases[0]!.id)).state).toBe("active");
});
