/**
 * I8 for agents: whatever an agent calls with another account's ids, it reads nothing of it and changes nothing.
 * `FUZZ_RUNS=50` makes 10,000 calls.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type RunningConsole, startConsole } from "../../../apps/console/start";
import { createAgent } from "../../../core/control/agents";
import { getBase, updateSettings } from "../../../core/control/bases";
import { createChangeSet } from "../../../core/control/change-sets";
import { getDatabase } from "../../../core/control/placement";
import { type AgentClient, agentClient } from "../../support/agent-client";
import { anyJson, anyText, fuzz } from "../../support/fuzz";
import { type ProxyStack, proxyStack } from "../../support/proxy-stack";

vi.setConfig({ testTimeout: 90_000 });

const ACTOR = { kind: "user", name: "owner@example.org" } as const;
/** Only in the victim's cells, names and notes. */
const MARK = "kept-apart";
/** Calls in the short form. */
const RUNS = 200;

let stack: ProxyStack;
let running: RunningConsole;
let agent: AgentClient;
/** Of the other account: ids, names, roles. */
let foreign: string[] = [];
let before: string;
let agentId: string;
/** Calls that did not end in an answer of a tool, by their message. */
const unanswered = new Map<string, number>();
let made = 0;

async function connected(name: string) {
  const fields = [
    { name: "Name", type: "singleLineText" },
    { name: "Secret", type: "singleLineText" },
  ];
  const records = ["one", "two"].map((one) => ({ fields: { Name: one, Secret: `${name} ${one}` } }));
  const sourceId = stack.sandbox.control.createBase({ name, tables: [{ name: "Tasks", fields, records }] });
  const replicated = await stack.connect(sourceId);
  await replicated.sync();
  await updateSettings(stack.managed, replicated.base, { changeSets: true });
  return { ...replicated, sourceId, base: await getBase(stack.ctx.db, replicated.base.id) };
}

/** The other account's rows in the control plane and in Airtable. */
async function stateOf(baseId: string, sourceId: string): Promise<string> {
  const { db } = stack.ctx;
  const rows = await db`
    select (select jsonb_agg(to_jsonb(s) order by s.id) from change_sets as s where s.base_id = ${baseId}) as sets,
      (select jsonb_agg(to_jsonb(g) order by g.id) from agents as g join bases as b on b.account_id = g.account_id
        where b.id = ${baseId}) as agents,
      (select count(*) from agent_calls where base_id = ${baseId}) as calls`;
  return JSON.stringify([rows, stack.sandbox.control.dump(sourceId).tables]);
}
let victim: Awaited<ReturnType<typeof connected>>;

beforeAll(async () => {
  stack = await proxyStack({ API_REQUESTS_PER_MINUTE: "1000000" });
  running = await startConsole(stack.managed, { port: 0 });
  const { ctx } = stack;
  victim = await connected(`Base ${MARK}`);
  const own = await connected("Own");
  const as = { ...stack.managed, actor: ACTOR };
  const others = await createAgent(as, victim.base.accountId, {
    name: `Agent ${MARK}`,
    mayPropose: true,
    bases: [{ baseId: victim.base.id }],
  });
  const record = stack.sandbox.control.dump(victim.sourceId).tables[0]!.records[0]!.id;
  const set = await createChangeSet(as, victim.base, {
    isProposal: true,
    note: MARK,
    agent: { id: others.agent.id, mostProposals: 10 },
    operations: [{ operation: "update", table: "Tasks", record, fields: { Name: MARK } }],
  });
  const database = await getDatabase(ctx.db, victim.base.database.id);
  const roles = await ctx.db<{ role: string }[]>`
    select role_name as role from sql_users where agent_id = ${others.agent.id}`;
  const [table] = stack.sandbox.control.dump(victim.sourceId).tables;
  foreign = [
    ...[victim.base.id, victim.base.accountId, victim.sourceId, victim.base.name, others.agent.id, set.id],
    ...[database.id, database.name, database.role, roles[0]!.role, record, table!.id],
    ...(table!.fields as { id: string }[]).map(({ id }) => id),
  ];
  const curious = await createAgent(as, own.base.accountId, {
    name: "Curious",
    mayPropose: true,
    limits: { proposals: 100 },
    bases: [{ baseId: own.base.id }],
  });
  await ctx.db`update agents set limits = limits || '{"calls": 100000000}' where id = ${curious.agent.id}`;
  agentId = curious.agent.id;
  agent = await agentClient(`http://localhost:${running.port}`, curious.token);
  before = await stateOf(victim.base.id, victim.sourceId);
}, 90_000);
afterAll(async () => {
  await agent?.[Symbol.asyncDispose]();
  await running?.stop();
  await stack?.[Symbol.asyncDispose]();
});

const theirs = fc.nat().map((at) => foreign[at % foreign.length]!);
const odd = fc.oneof(
  theirs,
  theirs.map((id) => id.toUpperCase()),
  theirs.map((id) => ` ${id}'`),
  fc.tuple(theirs, anyText).map(([id, text]) => `${id}${text}`),
  anyText,
);

const statements = fc.tuple(theirs, theirs, fc.nat()).map(([one, other, at]) => {
  const all = [
    `select * from "${one}".public.tasks`,
    `select * from "${one}"."${other}"`,
    `select * from dblink('dbname=${one} user=${other}', 'table tasks') as t (id text)`,
    `set role "${one}"`,
    `set session authorization "${one}"`,
    `select pg_read_file('base/${one}')`,
    `select * from pg_stat_activity where datname = '${one}'`,
    "select query from pg_stat_activity",
    `select datname from pg_database where has_database_privilege(datname, 'connect') and datname = '${one}'`,
    "select * from pg_shadow",
    "select rolpassword from pg_authid",
    "select * from pg_stat_statements",
    "select setting from pg_settings where name ~ 'conninfo|file'",
    `select * from _sync_issues where record_id = '${one}'`,
    `select * from tasks where id = '${one}' or secret = '${other}'`,
    `copy tasks from program 'psql ${one}'`,
    `grant "${one}" to current_user`,
    `create foreign table t (a int) server "${one}"`,
    `select lo_import('${one}')`,
    `listen "${one}"`,
  ];
  return all[at % all.length]!;
});

const operation = fc.record({
  operation: fc.constantFrom("create", "update", "delete"),
  table: fc.oneof(fc.constant("tasks"), odd),
  record: fc.oneof(theirs, odd),
  fields: fc.dictionary(fc.oneof(fc.constant("name"), theirs), anyJson(theirs), { maxKeys: 3 }),
});

// Mostly its own: calls that name another base end there, and what is behind that check must hold, too.
const base = fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: odd });
const calls = fc.oneof(
  fc.record({
    tool: fc.constant("query"),
    input: fc.record({
      base,
      sql: fc.oneof({ weight: 5, arbitrary: statements }, { weight: 1, arbitrary: odd }),
    }),
  }),
  fc.record({ tool: fc.constant("list_tables"), input: fc.record({ base, like: odd }) }),
  fc.record({
    tool: fc.constant("describe_tables"),
    input: fc.record({
      base,
      tables: fc.array(fc.oneof(fc.constant("tasks"), odd), { minLength: 1, maxLength: 3 }),
    }),
  }),
  fc.record({ tool: fc.constant("explain_freshness"), input: fc.record({ base, record: odd }) }),
  fc.record({
    tool: fc.constant("get_changes"),
    input: fc.record({ base, table: odd, record: odd, since: odd }, { requiredKeys: ["base"] }),
  }),
  fc.record({ tool: fc.constant("get_proposal"), input: fc.record({ id: odd }) }),
  fc.record({
    tool: fc.constant("propose_changes"),
    input: fc.record({ base, operations: fc.array(operation, { minLength: 1, maxLength: 3 }), note: odd }),
  }),
  fc.record({
    tool: fc.constantFrom("list_bases", "query", "get_proposal", "approve", "nothing"),
    input: fc.dictionary(fc.constantFrom("base", "sql", "id", "tables"), anyJson(theirs), { maxKeys: 3 }),
  }),
);

fuzz(
  "no call of an agent with another account's ids reads or changes anything of it",
  RUNS,
  fc.asyncProperty(calls, async ({ tool, input }) => {
    const sent = JSON.stringify(input);
    const answer = await agent.call(tool, input as Record<string, unknown>).catch((error: Error) => {
      const what = error.message.slice(0, 60).replace(/[^A-Za-z :-].*/s, "");
      unanswered.set(what, (unanswered.get(what) ?? 0) + 1);
      return { text: error.message, data: undefined };
    });
    made++;
    const said = JSON.stringify([answer.text, answer.data]);
    expect(answer.text).not.toMatch(/^internal/);
    // What was sent may be quoted; texts of the other account's cells are in no id.
    if (!sent.includes(MARK)) expect(said).not.toContain(MARK);
    expect(said).not.toMatch(/root:|SCRAM-SHA-256|kept-apart (one|two)/);
    expect(await stateOf(victim.base.id, victim.sourceId)).toBe(before);
  }),
);

test("those calls have reached the tools, with answers and refusals, and the agent still reads its own base", async () => {
  const outcomes = await stack.ctx.db<{ tool: string; errorCode: string; count: number }[]>`
    select tool, error_code as "errorCode", count(*)::int as count from agent_calls
    where agent_id = ${agentId} group by 1, 2 order by 1, 2`;
  if (process.env.FUZZ_RUNS) console.log({ made, unanswered: Object.fromEntries(unanswered) }, outcomes);
  const of = (tool: string) =>
    outcomes.filter((one) => one.tool === tool).reduce((sum, { count }) => sum + count, 0);
  expect(made).toBeGreaterThanOrEqual(RUNS);
  for (const tool of ["query", "list_tables", "describe_tables", "get_proposal", "propose_changes"])
    expect([tool, of(tool) >= made / 100]).toEqual([tool, true]);
  const kinds = new Set(outcomes.filter(({ tool }) => tool === "query").map(({ errorCode }) => errorCode));
  expect([...kinds]).toEqual(expect.arrayContaining(["", "not_found", "query_failed"]));
  // The server has refused these itself.
  const failed = outcomes.find(({ tool, errorCode }) => tool === "query" && errorCode === "query_failed");
  expect(failed!.count).toBeGreaterThan(made / 50);
  const own = await agent.call("query", { sql: "select secret from tasks order by secret" });
  expect(own.data.results[0].rows).toEqual([["Own one"], ["Own two"]]);
});
