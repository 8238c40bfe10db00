/**
 * The control plane is lost and restored from a dump that is an hour old: after `doctor --fix` every base is served as
 * before, from the existing databases, and nothing unknown is left on the cluster.
 */
import type postgres from "postgres";
import { expect, onTestFinished, test } from "vitest";
import { deleteBase, getBase, listBases } from "../../../core/control/bases";
import {
  databaseCredentials,
  getDatabase,
  rotateCredentials,
  setDatabaseWritable,
} from "../../../core/control/placement";
import { migrateControl } from "../../../core/control/setup";
import { asAdmin } from "../../support/admin";
import { controlDatabase } from "../../support/database";
import { type DoctorFinding, runDoctor } from "../../support/doctor";
import { type Fleet, startFleet } from "../../support/fleet";
import { until } from "../../support/poll";
import { readerOf } from "../../support/replica";
import { replicaServer } from "../../support/replica-server";

const table = (...names: string[]) => ({
  name: "Items",
  fields: [{ name: "Name", type: "singleLineText" as const }],
  records: names.map((name) => ({ fields: { Name: name } })),
});

const doctor = (fleet: Fleet, ...words: string[]) => runDoctor(fleet.ctx.config, ...words);

/** Without the workers, which a test stops to have its databases to itself, and without backups, which it makes by copying. */
const notWell = (findings: DoctorFinding[]) =>
  findings.filter(
    ({ check, status }) =>
      check !== "workers" && check !== "backup" && (status === "warning" || status === "problem"),
  );

/** Without what `doctor` says of the cluster that all tests share: others may have a database there that is open to all. */
const notWellHere = (findings: DoctorFinding[]) =>
  notWell(findings).filter(({ check }) => check !== "cluster");

/** Runs `work` while no session is connected to the database `name`. */
async function alone(name: string, work: (admin: postgres.Sql) => Promise<unknown>): Promise<void> {
  await asAdmin(async (admin) => {
    await admin.unsafe(`alter database ${name} allow_connections false`);
    await admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name}`;
    await until(
      async () => (await admin`select from pg_stat_activity where datname = ${name}`).length === 0,
      { what: `no session is connected to ${name}` },
    );
    await work(admin);
    await admin.unsafe(`alter database ${name} allow_connections true`);
  });
}

async function namesIn(url: string, schema = "public"): Promise<string[]> {
  await using reader = readerOf(url);
  const rows = await reader<{ name: string }[]>`select name from ${reader(schema)}.items order by name`;
  return rows.map(({ name }) => name);
}

test("a restored control plane adopts its databases, and `doctor --fix` repairs the rest", async () => {
  await using control = await controlDatabase();
  const name = new URL(control.url).pathname.slice(1);
  const dump = `${name}_dump`;
  const controlRole = new URL(control.url).username;
  await using replicas = await replicaServer();
  const onReplicas = <T>(work: (admin: postgres.Sql) => Promise<T>) => asAdmin(work, replicas.superuserUrl);
  await using fleet = await startFleet({
    databaseUrl: control.url,
    env: { REPLICA_URL: replicas.clusterUrl },
  });
  onTestFinished(() =>
    asAdmin(async (admin) => void (await admin.unsafe(`drop database if exists ${dump}`))),
  );
  const { ctx, sandbox } = fleet;
  const source = (...names: string[]) => sandbox.control.createBase({ tables: [table(...names)] });
  const databaseOf = async (id: string) => getDatabase(ctx.db, (await getBase(ctx.db, id)).database.id);
  const urlOf = async (id: string) => (await databaseCredentials(ctx, await databaseOf(id))).url;
  const hosted = async (database: string) =>
    onReplicas(
      async (admin) => (await admin`select from pg_database where datname = ${database}`).length === 1,
    );

  const [kept, rotated, deleted, opened] = await Promise.all(
    ["kept", "rotated", "deleted", "opened"].map(async (one) =>
      fleet.synced((await fleet.connect(source(one))).id),
    ),
  );
  const [deletedDatabase, openedDatabase] = [await databaseOf(deleted!.id), await databaseOf(opened!.id)];

  // The hour after the dump
  await fleet.workers.pop()!.stop();
  await alone(name, (admin) => admin.unsafe(`create database ${dump} template ${name}`));
  const worker = await fleet.addWorker();
  sandbox.control.createRecords(kept!.sourceBaseId, "Items", [{ fields: { Name: "new" } }]);
  await fleet.synced(kept!.id);
  const newPassword = (await rotateCredentials(ctx, await databaseOf(rotated!.id))).url;
  await deleteBase(ctx, deleted!);
  await setDatabaseWritable(ctx, openedDatabase, true);
  const made = await fleet.synced((await fleet.connect(source("made"))).id);
  const madeDatabase = await databaseOf(made.id);
  const owned = await fleet.synced((await fleet.connect(source("owned"))).id);
  const ownedDatabase = await databaseOf(owned.id);
  await setDatabaseWritable(ctx, ownedDatabase, true);
  await using owner = readerOf(await urlOf(owned.id));
  await owner`create table notes (id int)`;
  await worker.stop();
  fleet.workers.pop();

  // The restore
  await alone(dump, () =>
    alone(name, async (admin) => {
      await admin.unsafe(`drop database ${name}`);
      await admin.unsafe(`create database ${name} template ${dump} owner ${controlRole}`);
    }),
  );
  for (const { name: database } of [madeDatabase, ownedDatabase]) {
    await onReplicas(async (admin) => {
      const [row] = await admin<{ label: string }[]>`
        select shobj_description(oid, 'pg_database') as label from pg_database where datname = ${database}`;
      const older = row!.label.replace(/\S+$/, new Date(Date.now() - 3_600_000).toISOString());
      await admin.unsafe(`comment on database ${database} is '${older}'`);
    });
  }

  // Every start does this: it closes the new database, which Postgres opens to every role.
  await migrateControl(control.url, ctx.log);
  const found = await doctor(fleet);
  expect(found.code).toBe(1);
  const ill = notWell(found.findings).map(({ check, message }) => `${check} ${message}`);
  expect(ill.sort()).toEqual(
    [
      `orphan default: ${madeDatabase.name} belongs to no base`,
      `orphan default: ${ownedDatabase.name} belongs to no base`,
      `replica ${deletedDatabase.name}: its database and role does not exist`,
      `replica ${openedDatabase.name}: is writable, unlike its setting in the control plane`,
      `replica ${(await databaseOf(rotated!.id)).name}: the server does not accept the password that its owner sees`,
    ].sort(),
  );
  const fixed = await doctor(fleet, "--fix");
  expect(fixed.findings.filter(({ status }) => status === "fixed")).toHaveLength(4);
  // A customer's own objects are not dropped by a program.
  expect(notWell(fixed.findings)).toEqual([
    expect.objectContaining({ check: "orphan", message: expect.stringContaining(ownedDatabase.name) }),
  ]);
  const problems = fixed.findings.filter(({ status }) => status === "problem");
  expect(problems.map(({ check }) => check)).toEqual(["workers"]);
  expect(await hosted(madeDatabase.name)).toBe(false);
  expect(await hosted(ownedDatabase.name)).toBe(true);
  await onReplicas((admin) => admin.unsafe(`drop database ${ownedDatabase.name} with (force)`));

  // Everything is green, and equal to the source
  const before = new Map(
    await Promise.all((await listBases(ctx.db)).map(async ({ id }) => [id, await urlOf(id)] as const)),
  );
  sandbox.control.createRecords(rotated!.sourceBaseId, "Items", [{ fields: { Name: "later" } }]);
  await fleet.addWorker();
  const expected = {
    [kept!.id]: ["kept", "new"],
    [rotated!.id]: ["later", "rotated"],
    [deleted!.id]: ["deleted"],
    [opened!.id]: ["opened"],
  };
  for (const [id, names] of Object.entries(expected)) {
    const base = await fleet.synced(id);
    expect(base).toMatchObject({ state: "active", error: null });
    expect(before.get(id)).toBe(await urlOf(id));
    expect(await namesIn(await urlOf(id))).toEqual(names);
  }
  await using late = readerOf(newPassword);
  await expect(late`select 1`).rejects.toMatchObject({ code: "28P01" });
  await using readOnly = readerOf(await urlOf(opened!.id));
  await expect(readOnly.begin("read write", (sql) => sql`create table mine (a int)`)).rejects.toMatchObject({
    code: "42501",
  });
  expect(notWell((await doctor(fleet)).findings)).toEqual([]);
}, 120_000);

test("a database that another control plane has created on the same cluster is left alone", async () => {
  await using fleet = await startFleet();
  await using other = await startFleet({ workers: 0 });
  const make = ({ sandbox, connect }: Fleet) => connect(sandbox.control.createBase({ tables: [table("a")] }));
  const [, theirs] = [await make(fleet), await make(other)];
  const label = async () => {
    const [row] = await asAdmin(
      (admin) => admin<{ label: string }[]>`
        select shobj_description(oid, 'pg_database') as label from pg_database where datname = ${theirs.database.name}`,
    );
    return row!.label;
  };
  const older = (await label()).replace(/\S+$/, new Date(Date.now() - 3_600_000).toISOString());
  await asAdmin((admin) => admin.unsafe(`comment on database ${theirs.database.name} is '${older}'`));
  const { code, findings } = await doctor(fleet, "--fix");
  expect([code, notWellHere(findings)]).toEqual([0, []]);
  expect(await label()).toBe(older);
});

test("a database that has lost its schema, its lockdown or its label gets it again", async () => {
  await using fleet = await startFleet();
  const sourceId = fleet.sandbox.control.createBase({ tables: [table("bolt")] });
  const base = await fleet.synced((await fleet.connect(sourceId)).id);
  const owner = await fleet.owner(base);
  const database = base.database.name;
  const { role } = await getDatabase(fleet.ctx.db, base.database.id);
  await owner.unsafe(`
    drop schema public_swap cascade;
    grant connect on database ${database} to public;
    grant execute on function pg_advisory_lock(bigint) to public;
    comment on database ${database} is null;
    alter role ${role} connection limit 50;
    alter role ${role} reset temp_file_limit`);
  const { findings } = await doctor(fleet, "--fix");
  expect(
    findings.filter(({ status }) => status === "fixed").map(({ message }) => message.replace(/^.*?: /, "")),
  ).toEqual([
    "schema public does not exist",
    "other roles may connect, or call functions that write",
    "its role lacks the limits of a customer's role",
    "is not labeled as a database of this installation",
  ]);
  expect(notWellHere(findings).filter(({ check }) => check !== "base")).toEqual([]);
  await fleet.synced(base.id);
  const { url } = await databaseCredentials(fleet.ctx, await getDatabase(fleet.ctx.db, base.database.id));
  expect(await namesIn(url)).toEqual(["bolt"]);
  await using customer = readerOf(url);
  await expect(customer`select pg_advisory_lock(1)`).rejects.toMatchObject({ code: "42501" });
}, 60_000);
