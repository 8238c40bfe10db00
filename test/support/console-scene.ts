/**
 * A console with a full account: a synced base of many tables, many more bases without databases, and one of everything
 * that a page can show. Its user is also the operator.
 */

import { startConsole } from "../../apps/console/start";
import { createWebhook } from "../../core/alerts";
import { type CurrentUser, createToken, makeResetLink } from "../../core/control/accounts";
import { createAgent } from "../../core/control/agents";
import { type Base, getBase, recordRun, updateSettings } from "../../core/control/bases";
import { createWorkspace } from "../../core/control/budgets";
import { createChangeSet } from "../../core/control/change-sets";
import { newStatusPage, statusToken } from "../../core/control/history";
import { inviteMember } from "../../core/control/members";
import { createDraft, setDraftBase, setDraftDestination, setDraftKey } from "../../core/control/onboarding";
import { createSqlUser, getDatabase } from "../../core/control/placement";
import type { IssueGroup } from "../../core/replica";
import { addConnection } from "./add-connection";
import type { PageIds } from "./console-pages";
import type { Fleet } from "./fleet";
import { sceneTables } from "./scene-tables";

const PERSON = { email: "fleet@example.org", password: "correct horse" };
const RUNS = 70;

export interface ConsoleScene {
  origin: string;
  /** Of the signed-in user. */
  cookie: string;
  base: Base;
  ids: PageIds;
  stop(): Promise<void>;
}

/** @param fleet with a worker; it is stopped when the base is synced */
export async function consoleScene(
  fleet: Fleet,
  { bases, tables, rows }: { bases: number; tables: number; rows: number },
): Promise<ConsoleScene> {
  const { ctx, sandbox } = fleet;
  const named = sceneTables(tables, rows);
  const source = sandbox.control.createBase({ name: "Product catalog", tables: named });
  const unconnected = sandbox.control.createBase({ name: "Unconnected", tables: named.slice(0, 2) });
  const connected = await fleet.connect(source, { turbo: true });
  const base = await fleet.synced(connected.id, 300_000);
  await updateSettings(ctx, base, { paused: true });
  await Promise.all(fleet.workers.map((worker) => worker.stop()));
  await addBases(fleet, base, bases - 1);
  await addHistory(fleet, base);
  const running = await startConsole(ctx, { port: 0 });
  const origin = `http://localhost:${running.port}`;
  const cookie = await signIn(origin);
  const ids = await addEverything(fleet, base, unconnected);
  await ctx.db`analyze`;
  return { origin, cookie, base, ids, stop: () => running.stop() };
}

/** Bases as after a year of use, without their databases: no worker would find work. */
async function addBases({ ctx }: Fleet, { accountId }: Base, count: number): Promise<void> {
  const tables = JSON.stringify(
    Array.from({ length: 20 }, (_, index) => ({
      name: `table_${index}`,
      source_name: `Table ${index}`,
      source_id: `tbl${String(index).padStart(14, "0")}`,
      records: index * 137,
    })),
  );
  await ctx.db`
    insert into databases (id, account_id, cluster_id, name, role_name, encrypted_password)
    select 'dat_' || lpad(n::text, 20, '0'), ${accountId}, (select id from clusters), 'bt_' || md5(n::text), 'r' || n, 'x'
    from generate_series(1, ${count}::int) as n`;
  await ctx.db`
    insert into bases (id, account_id, platform, source_base_id, name, encrypted_api_key, database_id, schema_name, tables,
      rests_until)
    select 'bas_' || lpad(n::text, 20, '0'), ${accountId}, 'airtable', 'app' || n, 'Base of team ' || n, 'x',
      'dat_' || lpad(n::text, 20, '0'), 'public', ${tables}::text::jsonb,
      case when n % 10 > 0 then now() + interval '1 day' end
    from generate_series(1, ${count}::int) as n`;
  // What the search finds.
  const fields = Array.from({ length: 20 }, (_, index) => (index === 3 ? "Unit price" : `Field ${index}`));
  await ctx.db`
    insert into source_tables (base_id, table_id, primary_field_id, fields, name, field_names, search_text)
    select 'bas_' || lpad(n::text, 20, '0'), 'tbl' || lpad(t::text, 14, '0'), 'fld', '{}', 'Product Inventory ' || t,
      ${fields}, lower(E'\nproduct inventory ' || t || ${`\n${fields.join("\n")}\n`})
    from generate_series(1, ${count}::int) as n, generate_series(0, 19) as t`;
  for (let n = 1; n <= count; n++) {
    const startedAt = new Date(Date.now() - n * 3000);
    await recordRun(ctx.db, `bas_${String(n).padStart(20, "0")}`, {
      kind: "sweep",
      startedAt,
      completedAt: new Date(startedAt.getTime() + 500 + ((n * 37) % 400)),
      ...COUNTS,
      updated: n % 3,
    });
  }
}

const COUNTS = { seen: 12_345, inserted: 1, updated: 1, deleted: 0, requests: 130, waitMs: 900 };

/** A month of lag and calls, hours of runs, and changes of the schema. */
async function addHistory({ ctx }: Fleet, base: Base): Promise<void> {
  const issue: IssueGroup = {
    ...{ kind: "value" as const, table: "products_1", column: "price", reason: "not a number", count: 100 },
    ...{ record_id: "recAAAAAAAAAAAAAA", value: '"x"', table_id: null, field_id: null },
  };
  for (let run = 0; run < RUNS; run++) {
    const startedAt = new Date(Date.now() - (RUNS + 1 - run) * 120_000);
    const completedAt = new Date(startedAt.getTime() + 500 + ((run * 37) % 400));
    const issues = run === RUNS - 1 ? { issueCount: 100, issues: [issue] } : {};
    await recordRun(ctx.db, base.id, { kind: "sweep", startedAt, completedAt, ...COUNTS, ...issues });
  }
  await ctx.db`
    insert into schema_changes (base_id, kind, table_name, field_name)
    select ${base.id}, 'field_added', 'products_' || n, 'field_' || n from generate_series(1, 50) as n`;
  await ctx.db`
    insert into base_days (base_id, day, lag_p50_ms, lag_max_ms, changed, issues)
    select b.id, current_date - d, array_fill(900::real, array[24]), array_fill(4000::real, array[24]),
      array_fill(17, array[24]), array_fill(3, array[24])
    from bases as b, generate_series(0, 30) as d
    where b.account_id = ${base.accountId} on conflict do nothing`;
  await ctx.db`
    insert into quota_days (key, day, sync, client)
    select b.platform || ':' || b.source_base_id, current_date - d, array_fill(70, array[24]), array_fill(40, array[24])
    from bases as b, generate_series(0, 30) as d
    where b.account_id = ${base.accountId} on conflict do nothing`;
}

/** One of everything that an account has. */
async function addEverything(fleet: Fleet, base: Base, unconnected: string): Promise<PageIds> {
  const { ctx, sandbox } = fleet;
  const { db } = ctx;
  const { accountId } = base;
  await db`update accounts set is_operator = true where id = ${accountId}`;
  await createToken(db, accountId, "Nightly report");
  const url = "https://93.184.216.34/hook";
  const hook = { url, name: "Pager", form: "json" } as const;
  const { webhook } = await createWebhook(ctx, accountId, hook);
  const workspace = await createWorkspace(ctx, accountId, { name: "Marketing", plan: "team" });
  await db`update bases set workspace_id = ${workspace.id}`;
  const actor = { kind: "user", name: PERSON.email } as const;
  await newStatusPage(ctx, accountId, actor);
  const user = {
    userId: (await db`select id from users where email = ${PERSON.email}`)[0]!.id,
    email: PERSON.email,
    account: { id: accountId, role: "owner" },
  } as CurrentUser;
  const { token: invitation } = await inviteMember(
    db,
    user,
    { address: "invited@example.org", role: "viewer" },
    async () => {},
  );
  await db`insert into users (id, name, email, email_verified) values ('usr_guest', 'Guest', 'guest@example.org', true)`;
  await db`insert into account_members (account_id, user_id, role) values (${accountId}, 'usr_guest', 'viewer')`;
  const reset = await makeResetLink(db, PERSON.email);
  const draft = await createDraft(ctx, accountId, "airtable");
  await setDraftKey(ctx, draft, sandbox.key);
  await setDraftBase(ctx, draft, unconnected);
  await setDraftDestination(ctx, draft, { kind: "new" });
  const [token] = await db<{ id: string }[]>`select id from api_tokens where account_id = ${accountId}`;
  const database = await getDatabase(db, base.database.id);
  const sqlUser = await createSqlUser({ ...ctx, actor }, database, "Metabase");
  await updateSettings(ctx, base, { changeSets: true });
  const asked = { name: "Claude", mayPropose: true, bases: [{ baseId: base.id }] };
  const { agent } = await createAgent({ ...ctx, actor }, base.accountId, asked);
  const changeSet = await createChangeSet({ ...ctx, actor }, await getBase(db, base.id), {
    isProposal: true,
    note: "Raise prices",
    operations: [
      {
        operation: "update",
        table: "Products 0",
        record: "recAAAAAAAAAAAAAA",
        fields: { Price: 2 },
        expected: { Price: 1 },
      },
    ],
  });
  const reader = await fleet.reader(base);
  const [row] = await reader<{ id: string }[]>`select id from products_0 order by id limit 1`;
  return {
    base: base.id,
    table: "products_0",
    record: row!.id,
    token: token!.id,
    agent: agent.id,
    connection: await addConnection(db, accountId, "Claude"),
    sqlUser: sqlUser.id,
    webhook: webhook.id,
    workspace: workspace.id,
    changeSet: changeSet.id,
    member: "usr_guest",
    statusToken: (await statusToken(db, accountId))!,
    invitation,
    resetToken: new URLSearchParams(reset.split("?")[1]).get("token")!,
    draft: draft.id,
  };
}

async function signIn(origin: string): Promise<string> {
  const answer = await fetch(`${origin}/sign-in`, {
    method: "POST",
    body: new URLSearchParams(PERSON),
    headers: { origin, accept: "text/html" },
    redirect: "manual",
  });
  if (answer.status !== 303) throw new Error(`Not signed in: ${answer.status}`);
  return answer.headers
    .getSetCookie()
    .map((cookie) => cookie.split(";")[0])
    .join("; ");
}
