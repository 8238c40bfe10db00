/** The control plane's database is closed to the roles of customers, whichever role created it. */
import pino from "pino";
import postgres from "postgres";
import { expect, inject, onTestFinished, test } from "vitest";
import { sharesOpenControl } from "../../../core/control/placement";
import { inspectControl, migrateControl } from "../../../core/control/setup";
import { asAdmin } from "../../support/admin";

/** A database that an ordinary role owns, open to every role as Postgres creates it, and a customer's role. */
async function openControl(owner: "service" | "other" = "service") {
  const name = `bt_open_${crypto.randomUUID().slice(0, 8)}`;
  const [service, other, customer] = ["service", "other", "customer"].map((role) => `${name}_${role}`) as [
    string,
    string,
    string,
  ];
  const urlAs = (role: string) =>
    Object.assign(new URL(inject("postgresUrl")), {
      username: role,
      password: "secret",
      pathname: `/${name}`,
    }).href;
  await asAdmin(async (sql) => {
    for (const role of [service, other, customer])
      await sql.unsafe(`create role ${role} login nosuperuser password 'secret'`);
    await sql.unsafe(
      `create database ${name} owner ${owner === "service" ? service : other} template template0`,
    );
  });
  onTestFinished(() =>
    asAdmin(async (sql) => {
      await sql.unsafe(`drop database ${name} with (force)`);
      for (const role of [service, other, customer]) await sql.unsafe(`drop role ${role}`);
    }),
  );
  if (owner === "other") {
    await inDatabase(urlAs(other), `grant create on schema public to ${service}`);
    await inDatabase(urlAs(other), `grant create on database ${name} to ${service}`);
  }
  return { name, service, other, customer, urlAs };
}

async function inDatabase(url: string, statement: string): Promise<unknown[]> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    return [...(await sql.unsafe(statement))];
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** Whether `cluster add` refuses this server because of the control plane's database. */
async function sharesOpen(url: string): Promise<boolean> {
  const db = postgres(url, { max: 1, onnotice: () => {} });
  try {
    return await sharesOpenControl(db, inject("postgresUrl"));
  } finally {
    await db.end({ timeout: 1 });
  }
}

/** Migrates, as several processes do at once. @returns the warnings */
async function migrate(url: string): Promise<{ message?: string; remedy?: string; msg: string }[]> {
  const lines: string[] = [];
  const log = pino({ level: "warn" }, { write: (line) => void lines.push(line) });
  await Promise.all([1, 2, 3].map(() => migrateControl(url, log)));
  return lines.map((line) => JSON.parse(line));
}

test("a role that owns its database and is no superuser closes it: a customer's role cannot connect", async () => {
  const { customer, service, urlAs } = await openControl();
  expect(await inDatabase(urlAs(customer), "select 1 as one")).toEqual([{ one: 1 }]);
  expect(await migrate(urlAs(service))).toEqual([]);
  await expect(inDatabase(urlAs(customer), "select 1")).rejects.toMatchObject({ code: "42501" });
  expect(await sharesOpen(urlAs(service))).toBe(false);
  const { checks } = await inspectControl(urlAs(service));
  expect(checks.filter(({ message }) => message.includes("Every role"))).toEqual([]);
  // Opened again, it is closed at the next start.
  await asAdmin((sql) =>
    sql.unsafe(`grant connect on database ${new URL(urlAs(service)).pathname.slice(1)} to public`),
  );
  expect(await migrate(urlAs(service))).toEqual([]);
  await expect(inDatabase(urlAs(customer), "select 1")).rejects.toMatchObject({ code: "42501" });
});

test("a database that the role does not own stays open: the start and doctor say so, and no function can be called", async () => {
  const { name, customer, service, urlAs } = await openControl("other");
  const warnings = await migrate(urlAs(service));
  expect(warnings).not.toEqual([]);
  for (const warning of warnings) {
    expect(warning.message).toContain(`database ${name}`);
    expect(warning.remedy).toContain(`revoke connect, temporary on database "${name}" from public`);
  }
  expect(await sharesOpen(urlAs(service))).toBe(true);
  const { checks } = await inspectControl(urlAs(service));
  expect(checks).toContainEqual(
    expect.objectContaining({ severity: "warning", message: warnings[0]!.message }),
  );
  const callable = await inDatabase(
    urlAs(customer),
    `select p.proname from pg_proc as p where pronamespace = 'public'::regnamespace
       and has_function_privilege(p.oid, 'execute')`,
  );
  expect(callable).toEqual([]);
  await expect(
    inDatabase(urlAs(customer), "select quota_heartbeat('x', 'x', true, 0, 0, false, 5)"),
  ).rejects.toMatchObject({
    code: "42501",
  });
});

test("a database that another program uses, too, stays open for it, with a warning", async () => {
  const { customer, other, service, urlAs } = await openControl();
  await inDatabase(
    urlAs(service),
    `create schema theirs authorization ${service}; grant all on schema theirs to ${other}`,
  );
  await inDatabase(urlAs(other), "create table theirs.orders (id int)");
  expect(await migrate(urlAs(service))).not.toEqual([]);
  expect(await inDatabase(urlAs(customer), "select 1 as one")).toEqual([{ one: 1 }]);
});
