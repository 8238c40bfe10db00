/** The Issues page: groups by field and reason, muted fields, what counts, and the records of a group. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import { type Account, createToken } from "../../../core/control/accounts";
import { listChanges } from "../../../core/control/audit";
import { type Base, getBase, replicaTarget } from "../../../core/control/bases";
import { listBaseSummaries } from "../../../core/control/status";
import { openReplica, type Replica } from "../../../core/replica";
import { asker, authByHeader } from "../../support/console";
import { caller } from "../../support/control-support";
import { type Fleet, startFleet } from "../../support/fleet";
import { until } from "../../support/poll";

/** Of one field. */
const MANY = 50_000;

let fleet: Fleet;
let replica: Replica;
let base: Base;
let owner: Account;
let ask: ReturnType<typeof asker>;
let call: ReturnType<typeof caller>;

beforeAll(async () => {
  fleet = await startFleet({ sandbox: { settings: { rateLimitOff: true } } });
  const sourceId = fleet.sandbox.control.createBase({
    name: "Club",
    tables: [
      {
        name: "Members",
        fields: [
          { name: "Name", type: "singleLineText" },
          { id: "fldPaid0000000001", name: "Paid", type: "number" },
          { id: "fldDays0000000001", name: "Days", type: "number" },
          {
            name: "Fee a day",
            type: "formula",
            options: {
              formula: "{fldPaid0000000001}/{fldDays0000000001}",
              referencedFieldIds: ["fldPaid0000000001", "fldDays0000000001"],
              isValid: true,
              result: { type: "number" },
            },
          },
        ],
        records: [
          { fields: { Name: "nul \u0000 inside", Paid: 1, Days: 0 } },
          { fields: { Name: "Ada", Paid: 2, Days: 0 } },
        ],
      },
    ],
  });
  base = await fleet.connect(sourceId);
  base = await fleet.synced(base.id);
  owner = { id: base.accountId, email: "fleet@example.org", isOperator: false } as Account;
  const app = consoleApp(fleet.ctx, authByHeader());
  [ask, call] = [asker(app), caller(app)];
  replica = openReplica(await replicaTarget(fleet.ctx, base));
}, 120_000);
afterAll(async () => {
  await replica?.close();
  await fleet?.[Symbol.asyncDispose]();
});

const page = async (path = "/issues", who: object = {}) =>
  ask(`/bases/${base.id}${path}`, { account: owner, ...who });
const members = () =>
  fleet.sandbox.control.dump(base.sourceBaseId).tables[0] as unknown as {
    id: string;
    fields: { id: string; name: string }[];
  };
const fieldId = (wanted: string) => members().fields.find(({ name }) => name === wanted)!.id;
const tableId = () => members().id;
const mute = (field: string, muted: "on" | "off", who: object = {}) =>
  page("/issues/mute", { form: { table_id: tableId(), field_id: fieldId(field), muted }, ...who });
const counts = async () => {
  const { issueCount, openIssueCount } = await getBase(fleet.ctx.db, base.id);
  const [summary] = await listBaseSummaries(fleet.ctx.db, base.accountId);
  expect(summary!.issues).toBe(openIssueCount);
  const tab = /Issues<span class="tab-mark">([\d,]+)<\/span>/.exec((await page("")).text)?.[1] ?? "0";
  expect(Number(tab.replaceAll(",", ""))).toBe(openIssueCount);
  return { issueCount, openIssueCount };
};

test("errors of formulas are apart from values that are lost, and do not count", async () => {
  expect(await counts()).toEqual({ issueCount: 3, openIssueCount: 1 });
  const { issues } = await getBase(fleet.ctx.db, base.id);
  expect(issues.map(({ kind, column, reason, count }) => [kind, column, reason, count])).toEqual([
    ["value", "name", "the text contained characters that Postgres cannot store", 1],
    ["formula", "fee_a_day", "Infinity", 2],
  ]);
  const { text } = await page();
  const at = text.indexOf("Errors of Airtable's formulas");
  const [open, formulas] = [text.slice(0, at), text.slice(at)];
  expect(open).toContain("the text contained characters");
  expect(open).toContain(`>Name</bdi>`);
  expect(open).not.toContain("Infinity");
  expect(formulas).toContain("Infinity");
  const overview = (await page("")).text;
  expect(overview).toMatch(/title="1 issue">1</);
  expect(overview).not.toContain("Infinity");
});

test("many issues are a few groups, whose records are listed in pages", async () => {
  const { sql, swap } = replica;
  await sql`insert into ${sql.unsafe(swap)}._sync_issues (table_name, record_id, field, value, reason)
    select 'members', 'rec' || lpad(n::text, 14, '0'), 'paid', '"' || n || ' days"', 'not a number'
    from generate_series(1, ${MANY}::int) as n`;
  await until(async () => (await getBase(fleet.ctx.db, base.id)).issueCount === MANY + 3, {
    what: "the next sync has counted the issues",
    timeoutMs: 60_000,
  });
  expect(await counts()).toEqual({ issueCount: MANY + 3, openIssueCount: MANY + 1 });
  const { text } = await page();
  expect(text).toContain("Issues: 50,001");
  expect(text.match(/<tr>/g)!.length).toBeLessThan(10);
  expect(text).toContain("rec00000000000001");
  const href = /href="([^"]+\/issues\/records\?[^"]*field=paid[^"]*)"/
    .exec(text)![1]!
    .replaceAll("&amp;", "&");

  const seen: string[] = [];
  let next: string | undefined = href;
  for (let pages = 0; next !== undefined && pages < 3; pages++) {
    const { status, text: listed } = await ask(next, { account: owner });
    expect(status).toBe(200);
    expect(listed).toContain("50,000 records");
    expect(listed).toMatch(/<time [^>]+>\d{4}-\d\d-\d\d \d\d:\d\d UTC</);
    seen.push(...[...listed.matchAll(/<code>(rec\w+)<\/code>/g)].map(([, id]) => id!));
    next = /href="([^"]+)">Next page</.exec(listed)?.[1]?.replaceAll("&amp;", "&");
  }
  expect(seen).toEqual(Array.from({ length: 300 }, (_, n) => `rec${String(n + 1).padStart(14, "0")}`));
  const last = (await ask(`${href}&after=rec00000000049950`, { account: owner })).text;
  expect(last.match(/<code>rec\w+<\/code>/g)).toHaveLength(50);
  expect(last).not.toContain("Next page");
  for (const odd of ["records", "records?table=%00&field=x", "records?table=members&field=nope&reason=x"]) {
    const answer = await page(`/issues/${odd}`);
    expect([odd, answer.status]).toEqual([odd, 200]);
    expect(answer.text).toContain("No such issues now");
  }
});

test("a muted field does not count until it is unmuted; only writers may, and it is in the audit log", async () => {
  for (const role of ["viewer", "reader"] as const) {
    expect((await mute("Paid", "on", { role })).status).toBe(403);
    expect((await page("/issues", { role })).text).not.toContain("Mute this field");
  }
  expect((await getBase(fleet.ctx.db, base.id)).settings.mutedFields).toEqual([]);
  expect((await mute("Paid", "on")).headers.get("location")).toContain(`/bases/${base.id}/issues`);
  expect(await counts()).toEqual({ issueCount: MANY + 3, openIssueCount: 1 });
  const [change] = await listChanges(fleet.ctx.db, { accountId: base.accountId, limit: 1 });
  expect(change).toMatchObject({
    action: "base.changed",
    actor: "fleet@example.org",
    details: { muted_fields: `${tableId()}.${fieldId("Paid")}` },
  });
  const { text } = await page();
  expect(text.split("Muted fields")[0]).not.toContain("not a number");
  expect(text.split("Muted fields")[1]).toContain("not a number");
  expect(text).toContain("Unmute");
  // A sync keeps it so, and a field without issues can be unmuted, too.
  const { sql, swap } = replica;
  await sql`delete from ${sql.unsafe(swap)}._sync_issues where field = 'paid'`;
  await until(async () => (await getBase(fleet.ctx.db, base.id)).issueCount === 3, {
    what: "the next sync has counted the issues",
    timeoutMs: 60_000,
  });
  expect(await counts()).toEqual({ issueCount: 3, openIssueCount: 1 });
  expect((await page()).text).toMatch(/Without issues now.*Members, Paid.*Unmute/s);
  await mute("Name", "on");
  await mute("Paid", "off");
  expect(await counts()).toEqual({ issueCount: 3, openIssueCount: 0 });
  const none = (await page()).text;
  expect(none).toContain("No issues");
  expect(none).not.toContain("Every value fits");
  expect((await page("")).text).not.toMatch(/\d issues?</);
});

test("the API mutes fields of the base, and names one that does not exist", async () => {
  const token = await createToken(fleet.ctx.db, base.accountId, "issues");
  const patch = (muted_fields: object[]) =>
    call("PATCH", `/api/v1/bases/${base.id}`, { token, body: { muted_fields } });
  const days = { table_id: tableId(), field_id: fieldId("Days") };
  const { status, body } = await patch([days, days]);
  expect([status, body.settings.muted_fields, body.issue_count, body.open_issue_count]).toEqual([
    ...[200, [days], 3, 1],
  ]);
  expect(body.issues[0]).toMatchObject({ kind: "value", field_id: fieldId("Name"), count: 1 });
  const wrong = await patch([days, { ...days, field_id: "fldNone" }]);
  expect([wrong.status, wrong.body.error.message]).toEqual([
    ...[422, "Table members has no field fldNone in its database"],
  ]);
  const foreign = await patch([{ ...days, table_id: "tblNone" }]);
  expect(foreign.body.error.message).toBe("The base has no table tblNone in its database");
  expect((await patch([])).body.settings.muted_fields).toEqual([]);
});

test("errors of formulas do not count, however many fields have them", async () => {
  const { sql, swap } = replica;
  await sql`insert into ${sql.unsafe(swap)}._sync_issues (table_name, record_id, field, value, reason)
    select 'members', 'rec00000000000001', 'formula_' || n, '{"error": "#ERROR!"}', '#ERROR!'
    from generate_series(1, 250) as n`;
  await until(async () => (await getBase(fleet.ctx.db, base.id)).issueCount === 253, {
    what: "the next sync has counted the issues",
    timeoutMs: 60_000,
  });
  await mute("Name", "off");
  expect(await counts()).toEqual({ issueCount: 253, openIssueCount: 1 });
});
