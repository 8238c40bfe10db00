/**
 * A member with the role viewer runs SQL in the console: against the application's sessions in a hosted database, and
 * with the rights of the account's own URL in a database that the account hosts.
 */
import type { Random } from "../../../apps/sandbox/random";
import type { ConsoleClient } from "../../support/console-client";
import { Account } from "../account";
import { type Attack, Tally } from "../attack";
import { randomAddress, type Service } from "../service";
import { ownDatabase } from "./hostile-postgres";

const PASSWORD = "correct horse battery";

export const viewerSql: Attack = {
  name: "viewer-sql",
  finding: "S24",
  async run(service, rounds, random) {
    const tally = new Tally();
    for (let round = 0; round < rounds; round++) {
      const [owner, viewer] = [await person(service, random), await person(service, random)];
      const browser = await joined(service, owner, viewer, random);
      await hosted(service, owner, browser, tally, random);
      await external(service, owner, browser, tally, random);
    }
    return tally;
  },
};

/** The application's sessions and statements, in a database of Basetide's. */
async function hosted(
  service: Service,
  owner: Account,
  browser: ConsoleClient,
  tally: Tally,
  random: Random,
): Promise<void> {
  const source = await service.sourceBase("Read by viewers");
  const key = await service.key({ [source.id]: "create" });
  const base = await service.connect(owner, source, { api_key: key, settings: { live: false } });
  const run = editor(browser, base.id);
  const secret = `secret ${random.int(1, 1e9)}`;
  const role = new URL(base.url).username;
  const before = await base.sql<
    { pid: number }[]
  >`select pg_backend_pid() as pid, ${secret}::text as literal`;
  const others = `from pg_stat_activity where usename = '${role}' or usename ~ '^bt_' and pid <> pg_backend_pid()`;
  tally.add((await run(`select query ${others}`)).includes(secret) && "reads the application's statements");
  for (const ends of ["pg_terminate_backend", "pg_cancel_backend"])
    await run(`select ${ends}(pid) ${others}`);
  for (const sql of [
    `set role ${role}`,
    `alter role ${role} password 'known'`,
    `select pg_terminate_backend(${before[0]!.pid})`,
  ])
    await run(sql);
  const after = await base.sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
  tally.add(after[0]!.pid !== before[0]!.pid && "ended the application's session");
  tally.add(
    !(await run("select count(*) as rows from tasks")).includes("rows") && "the editor no longer works",
  );
  await service.disconnect(base);
}

/** Another schema of the account's own database, which only the role of its URL reads. */
async function external(
  service: Service,
  owner: Account,
  browser: ConsoleClient,
  tally: Tally,
  random: Random,
): Promise<void> {
  await using database = await ownDatabase(service);
  const source = await service.sourceBase("In an own database");
  const key = await service.key({ [source.id]: "create" });
  const destination = { kind: "external" as const, url: database.url, schema: "copy" };
  const base = await service.connect(owner, source, { api_key: key, settings: { live: false }, destination });
  const secret = `salary ${random.int(1, 1e9)}`;
  await base.sql
    .unsafe(`create schema payroll; create table payroll.salaries as select '${secret}' as paid`)
    .simple();
  const run = editor(browser, base.id);
  const attempts = [
    "select * from payroll.salaries",
    "select query_to_xml('select * from payroll.salaries', true, true, '')",
    "table payroll.salaries",
    "explain (analyze, verbose) select * from payroll.salaries",
    "select pg_terminate_backend(pid) from pg_stat_activity where usename = current_user",
  ];
  for (const sql of attempts) {
    const text = await run(sql);
    tally.add((text.includes(secret) || text.includes("Seq Scan")) && `${sql} in the account's own database`);
  }
  for (const path of ["data/tasks", "data/tasks/download", "schema?table=tasks"]) {
    const { status, text } = await browser.get(`/bases/${base.id}/${path}`);
    tally.add(text.includes(secret) && `${path}: ${status}`);
  }
  const set = await browser.post(`/bases/${base.id}/connect/reading-url`, { url: database.url });
  tally.add(set.status < 400 && "set a reading URL");
  await service.disconnect(base);
}

/** Runs SQL as the editor's script does. @returns the shown text */
function editor(browser: ConsoleClient, base: string) {
  return async (sql: string): Promise<string> => {
    const headers = { origin: "http://console", "sec-fetch-site": "same-origin", "hx-request": "true" };
    return (await browser.post(`/bases/${base}/sql`, { sql }, headers)).text;
  };
}

async function person(service: Service, random: Random): Promise<Account> {
  const email = `person${random.int(1, 1e9)}-${crypto.randomUUID().slice(0, 8)}@example.org`;
  const words = ["account", "create", "--email", email, "--password", PASSWORD, "--json"];
  const { id, token } = JSON.parse(await service.operator(...words)) as { id: string; token: string };
  return new Account(id, "person", email, PASSWORD, token, service.consoleUrl);
}

/** Invites the viewer, who joins. @returns the viewer's browser */
async function joined(
  service: Service,
  owner: Account,
  viewer: Account,
  random: Random,
): Promise<ConsoleClient> {
  const signIn = async ({ email, password }: Account) => {
    const browser = service.browser(randomAddress(random));
    await browser.post("/sign-in", { email, password, next: "/bases" });
    return browser;
  };
  const owners = await signIn(owner);
  await owners.post("/account/members", { email: viewer.email, role: "viewer" });
  const { link } = await service.mailbox.next(viewer.email);
  const browser = await signIn(viewer);
  await browser.post("/invitation", { token: new URL(link).searchParams.get("token") ?? "" });
  await browser.post("/account/switch", { account: owner.id });
  return browser;
}
