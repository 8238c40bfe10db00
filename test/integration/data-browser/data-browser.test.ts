/** The data browser on a synced base: pages, filters, records, downloads, and what it may not do. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import { type Account, createAccount } from "../../../core/control/accounts";
import { type Base, replicaTarget, updateSettings } from "../../../core/control/bases";
import { closeReaders, getDatabase, readerPool } from "../../../core/control/placement";
import { browseRows } from "../../../core/data-browser/browse";
import type { BrowsedColumn, BrowsedTable } from "../../../core/data-browser/columns";
import { OPERATORS_OF } from "../../../core/data-browser/filters";
import { consoleRoleOf, setWritable } from "../../../core/replica";
import { asker, authByHeader } from "../../support/console";
import { projectBase, TASKS } from "../../support/data-scene";
import { freshDatabase } from "../../support/database";
import { type Fleet, startFleet } from "../../support/fleet";
import { anyText, fuzz } from "../../support/fuzz";
import { hostedUrl } from "../../support/hosted-url";
import { until } from "../../support/poll";

let fleet: Fleet;
let base: Base;
let owner: Account;
let ask: ReturnType<typeof asker>;

beforeAll(async () => {
  fleet = await startFleet();
  // Without a platform, a request to Airtable would fail.
  ask = asker(consoleApp({ ...fleet.ctx, platforms: [] }, authByHeader()));
  const id = projectBase(fleet.sandbox);
  base = await fleet.connect(id, { turbo: true });
  base = await fleet.synced(base.id);
  owner = { id: base.accountId, email: "fleet@example.org", isOperator: false } as Account;
}, 120_000);
afterAll(() => fleet?.[Symbol.asyncDispose]());

/** A failure prints the part, and not the whole page. */
const expectPart = (text: string, part: string) => expect([part, text.includes(part)]).toEqual([part, true]);
const page = (path: string, account = owner) => ask(`/bases/${base.id}/data${path}`, { account });
const idsIn = (text: string) =>
  [...text.matchAll(/<th scope="row"><a href="[^"]*\/(rec\w+)"/g)].map(([, id]) => id!);

test("a table's rows are shown by type, in pages, without a call to Airtable", async () => {
  expect((await page("")).headers.get("location")).toBe(`/bases/${base.id}/data/projects_more`);
  expectPart((await page("/empty")).text, "No records");

  const first = await page("/tasks");
  expect(first.status).toBe(200);
  expect(Bun.gzipSync(first.text).length).toBeLessThan(20_000);
  expect(idsIn(first.text)).toHaveLength(100);
  expectPart(first.text, `1–100 of ${TASKS}`);
  // Links carry the text of the linked record, escaped; choices Airtable's color; numbers their format.
  expectPart(first.text, "Website</a>");
  expectPart(first.text, "&lt;b>Billing&lt;/b>");
  expectPart(first.text, `<span class="tag green strong">Done</span>`);
  expectPart(first.text, "$1,979.75");
  // A field's description is at its head, for the pointer, the keyboard and screen readers.
  const about = /aria-describedby="(about-\d+)"><span[^>]*><\/span>Estimate/.exec(first.text)?.[1];
  expectPart(
    first.text,
    `role="tooltip" id="${about}"><span class="muted">estimate, number</span>\nHours of work.\n\nWithout &lt;meetings>.</span>`,
  );
  expect(first.text.match(/role="tooltip"/g)).toHaveLength(1);
  expect(first.text).not.toContain("issue-mark");
  expect((await page("/tasks?col=code")).text.match(/issue-mark/g)).toHaveLength(2);

  const seen = idsIn(first.text);
  for (let next = first.text; ; ) {
    const href = /rel="next"[^>]*href="([^"]+)"/.exec(next)?.[1];
    if (!href) break;
    next = (await ask(href.replaceAll("&amp;", "&"), { account: owner })).text;
    seen.push(...idsIn(next));
  }
  expect(seen).toHaveLength(TASKS);
  expect(new Set(seen).size).toBe(TASKS);
  expect(seen).toEqual(seen.toSorted());
});

test("filters and sorting are in the URL; what is not possible is said", async () => {
  const done = await page("/tasks?f=status&o=is&v=Done&f=estimate&o=gte&v=30&sort=estimate&dir=desc");
  expect(done.status).toBe(200);
  const found = idsIn(done.text);
  expect(found.length).toBeGreaterThan(3);
  expectPart(done.text, `1–${found.length} of ${found.length}`);
  expectPart(done.text, 'aria-sort="descending"');
  // A link is found by the text of its record.
  expect(idsIn((await page("/tasks?f=project&o=contains&v=web")).text)).toHaveLength(77);

  const wrong = await page("/tasks?f=estimate&o=gte&v=many");
  expect(wrong.status).toBe(422);
  expectPart(wrong.text, "“many” is not a number");
  expect(wrong.text).not.toContain("grid-scroll");
  expect((await page("/tasks?f=done&o=contains&v=x")).status).toBe(422);

  // Texts are compared without regard to case, unless asked.
  for (const [query, count] of [
    ["f=status&o=is&v=dONE", 57],
    ["f=status&o=is_not&v=done", TASKS - 57],
    ["f=status&o=exactly&v=dONE", 0],
    ["f=title&o=is&v=draft LANDING page 0", 1],
    ["f=title&o=is&v=draft landing page %25", 0],
    ["f=areas&o=has&v=design", 77],
    ["f=areas&o=has_not&v=design", TASKS - 77],
    ["f=project&o=has&v=website", 77],
    ["f=title&o=not_contains&v=LANDING", TASKS - 33],
    ["f=done&o=checked&v=", 115],
    ["f=done&o=unchecked", 115],
  ] as const) {
    const { status, text } = await page(`/tasks?${query}`);
    const shown = count === 0 ? "No records match" : `of ${count}<`;
    expect([query, status, text.includes(shown)]).toEqual([query, 200, true]);
  }

  const saved = await page("/tasks?f=gone&o=is&v=x&sort=gone&col=gone&col=due");
  expect(saved.status).toBe(200);
  expectPart(saved.text, "The link filters by “gone”");
  expectPart(saved.text, "The link sorts by “gone”");
  expectPart(saved.text, `1–100 of ${TASKS}`);
  expect(saved.text).not.toContain("Estimate</a>");

  const none = await page("/tasks?after=recDeleted0000000");
  expectPart(none.text, "no longer exists");
  const missing = await page("/gone_table");
  expect([missing.status, missing.text.includes("There is no table gone_table")]).toEqual([404, true]);
  for (const private_ of ["/_sync_meta", "/_sync_issues", "/pg_class"]) {
    expect([private_, (await page(private_)).status]).toEqual([private_, 404]);
  }
});

test("a filter offers the operators and values that fit the column, at once and without a script", async () => {
  /** The texts of the options of line `number`, and the form of its value. */
  const lineOf = (text: string, number: number) => {
    const line = text.split('class="filter-line')[number]!;
    const operators = /name="o".*?<\/select>/s.exec(line)?.[0] ?? "";
    return {
      operators: [...operators.matchAll(/<option[^>]*>([^<]+)/g)].map(([, one]) => one),
      value: /<(?:input|select) (?:type="hidden" )?name="v".*?>/s.exec(line)?.[0],
      rest: line,
    };
  };
  for (const ask_ of [
    (query: string) => page(`/tasks?${query}`),
    (query: string) => ask(`/bases/${base.id}/data/tasks/filters?${query}`, { account: owner, isHtmx: true }),
  ]) {
    // A column without an operator is a filter that is still to choose: rows are shown.
    const checkbox = await ask_("f=done");
    expect(checkbox.status).toBe(200);
    expect(lineOf(checkbox.text, 1).operators).toEqual(["is checked", "is not checked"]);
    expectPart(lineOf(checkbox.text, 1).value!, 'type="hidden"');
    const status = lineOf((await ask_("f=status")).text, 1);
    expect(status.operators).toEqual(["is", "is not", "is empty", "is not empty"]);
    expect(status.value).toMatch(/^<select/);
    for (const choice of ["Planned", "In progress", "Review", "Done"]) expectPart(status.rest, choice);
    expect(lineOf((await ask_("f=areas")).text, 1).operators[0]).toBe("has");
    const due = lineOf((await ask_("f=due")).text, 1);
    expect(due.operators).toEqual(expect.arrayContaining(["is today", "is in this week", "is before"]));
    expectPart(due.value!, 'type="date"');
    expect(lineOf((await ask_("f=estimate")).text, 1).operators).not.toContain("contains");
    expectPart(lineOf((await ask_("f=estimate&o=gt&v=3&f=title")).text, 1).value!, 'value="3"');
    // The line for one more.
    expect(lineOf((await ask_("f=estimate&o=gt&v=3&f=title")).text, 2).operators[0]).toBe("contains");
  }
  // The column of a line changed: its operators are offered, and nothing is wrong yet.
  const changed = await ask(`/bases/${base.id}/data/tasks/filters?f=done&o=is&v=Done`, {
    account: owner,
    isHtmx: true,
  });
  expect([changed.status, changed.text.includes("field-error")]).toEqual([200, false]);
  const shown = await page("/tasks?f=done");
  expectPart(shown.text, `1–100 of ${TASKS}`);
  expectPart(shown.text, '<details class="tool" open>');
});

test("relative dates are days of UTC: today, this week, the last 7 days", async () => {
  const { sql } = rows;
  await sql.begin(async (tx) => {
    const table = `"ro'ws"" """`;
    await tx.unsafe(`truncate ${table}`);
    // A row for each of 90 days, and one for the last microsecond of each.
    await tx.unsafe(`insert into ${table} (id, d, "$1")
      select 'rec' || n || e, day, day + e * interval '1 day' - e * interval '1 microsecond'
      from generate_series(-45, 45) as n, generate_series(0, 1) as e,
        lateral (select date_trunc('day', now() at time zone 'UTC') + n * interval '1 day' as day) as days`);
    await tx`set local time zone 'Pacific/Auckland'`;
    const [{ today }] = (await tx`select to_char(now() at time zone 'UTC', 'YYYY-MM-DD') as today`) as [
      { today: string },
    ];
    const at = Date.parse(today);
    const [weekday, date] = [(new Date(at).getUTCDay() + 6) % 7, new Date(at).getUTCDate()];
    const month = new Date(Date.UTC(new Date(at).getUTCFullYear(), new Date(at).getUTCMonth() + 1, 0));
    const spans = {
      today: [0, 0],
      yesterday: [-1, -1],
      this_week: [-weekday, 6 - weekday],
      last_7_days: [-6, 0],
      next_7_days: [0, 6],
      this_month: [1 - date, month.getUTCDate() - date],
      last_30_days: [-29, 0],
    } as const;
    for (const [operator, [first, last]] of Object.entries(spans)) {
      for (const column of ["d", "$1"]) {
        const selection = {
          filters: [{ column, operator: operator as keyof typeof spans, value: "" }],
          sort: { column: "id", isDescending: false },
        };
        const found = await browseRows(tx as never, NAMED, [], selection, { limit: 1000, form: "whole" });
        const days = Array.from({ length: last - first + 1 }, (_, index) => first + index);
        const expected = days.flatMap((day) => [`rec${day}0`, `rec${day}1`]).sort();
        expect([operator, column, found.map(([id]) => id as string).sort()]).toEqual([
          operator,
          column,
          expected,
        ]);
      }
    }
  });
});

test("a search finds records by any column, hidden ones and linked records too, and says when it was cut", async () => {
  for (const [query, count] of [
    ["q=TEST ONBOARDING", 5],
    ["q=website", 77],
    ["q=website&f=status&o=is&v=Done", 19],
    ["q=bo@example", 46],
    ["q=1979.75", 1],
    ["q=line of task 12.&col=due", 1],
    ["q=recTask0000000007", 1],
    ["q=brief.pdf", 77],
    ["q=%25", 0],
    [`q=${"x".repeat(600)}%00`, 0],
  ] as const) {
    const { status, text } = await page(`/tasks?${query}`);
    const shown = count === 0 ? "No cell of any column contains the text" : `of ${count}<`;
    expect([query, status, text.includes(shown)]).toEqual([query, 200, true]);
  }
  // The links of the page keep it.
  expectPart((await page("/tasks?q=o&sort=due")).text, 'rel="next" class="button small" href="/bases/');
  expectPart((await page("/tasks?q=o&sort=due")).text, "?q=o&amp;sort=due&amp;after=");
  const csv = await page("/tasks/download?format=csv&q=test onboarding");
  expect(csv.text.match(/^recTask/gm)).toHaveLength(5);

  // A search that takes long shows what it has found until then.
  const admin = await fleet.owner(base);
  await admin.unsafe(`create policy slow on tasks to public
    using (case when id < 'recTask0000000100' then pg_sleep(0.03) is not null else true end)`);
  await admin.unsafe("alter table tasks enable row level security");
  try {
    const cut = await page("/tasks?q=landing page&sort=id");
    expect(cut.status).toBe(200);
    expectPart(cut.text, "The search was stopped after 2 seconds");
    const ids = idsIn(cut.text);
    expect([ids[0], ids.length < 15]).toEqual(["recTask0000000000", true]);
  } finally {
    await admin.unsafe("alter table tasks disable row level security");
    await admin.unsafe("drop policy slow on tasks");
  }
});

test("a record shows all fields, its issues and, with history, its changes", async () => {
  const [record] = ["recTask0000000001"];
  const before = await page(`/tasks/${record}`);
  expectPart(before.text, "not a number");
  expectPart(before.text, "Changes are not recorded");
  await updateSettings(fleet.ctx, base, { history: true });
  const reader = await fleet.reader(base);
  await until(async () => (await reader`select to_regclass('public._sync_history') as it`)[0]!.it !== null, {
    what: "the history is recorded",
  });
  fleet.sandbox.control.updateRecords(base.sourceBaseId, "Tasks", [
    { id: record!, fields: { Title: "A new title" } },
  ]);
  const text = await until(
    async () => {
      const answer = await ask(`/bases/${base.id}/data/tasks/${record}`, { account: owner, isHtmx: true });
      return answer.text.includes("<ins>A new title</ins>") ? answer.text : undefined;
    },
    { what: "the change is shown", timeoutMs: 60_000 },
  );
  expect(text).not.toContain("<html");
  expectPart(text, `https://airtable.com/${base.sourceBaseId}/tblTasks000000001/${record}`);
  expect((await page("/tasks/recNone0000000000")).status).toBe(404);
});

test("the address of a grid has the record that is open at the side, of any table", async () => {
  for (const [record, title] of [
    ["recTask0000000003", "Test onboarding 3"],
    ["tasks/recTask0000000003", "Test onboarding 3"],
    ["projects_more/recProject0000000", "Website"],
    ["tasks/recNone0000000000", "No record"],
    ["pg_class/x", "No record"],
    ["/", "No record"],
  ]) {
    const { status, text } = await page(`/tasks?sort=due&record=${encodeURIComponent(record!)}`);
    expect([record, status]).toEqual([record, 200]);
    expectPart(text, `<h2 id="record-title">${title}</h2>`);
    // Without a script it is shown at once, and a link closes it.
    expectPart(text, 'class="side-panel" role="dialog" aria-labelledby="record-title">');
    expectPart(text, `needs-no-script" href="/bases/${base.id}/data/tasks?sort=due"`);
    expect(idsIn(text)).toHaveLength(100);
  }
  const closed = (await page("/tasks")).text;
  expectPart(closed, 'aria-labelledby="record-title" popover="auto"></div>');
});

test("the chosen columns of a table are kept for the browser, and a link's columns are not", async () => {
  const path = `/bases/${base.id}/data/tasks`;
  const visit = (query: string, cookie?: string) => ask(`${path}${query}`, { account: owner, cookie });
  const kept = await visit("?sort=due&col=due&col=budget&keep=shown");
  expect([kept.status, kept.headers.get("location")]).toEqual([303, `${path}?sort=due&col=due&col=budget`]);
  const header = kept.headers.get("set-cookie")!;
  expect(header).toMatch(new RegExp(`; Path=${path}; Max-Age=\\d+; HttpOnly; SameSite=Lax`));
  const cookie = header.split(";")[0]!;
  const heads = (text: string) => [...text.matchAll(/data-column="([^"]+)"/g)].map(([, name]) => name);
  const later = await visit("", cookie);
  expect(heads(later.text)).toEqual(["title", "budget", "due"]);
  const linked = await visit("?col=notes", cookie);
  expect([heads(linked.text), linked.headers.get("set-cookie")]).toEqual([["title", "notes"], null]);
  // A column that is gone since is left out.
  const gone = await visit("", `${cookie}&col=gone`);
  expect([heads(gone.text), gone.text.includes("do not exist")]).toEqual([["title", "budget", "due"], false]);
  const usual = await visit("?sort=due&col=due&keep=usual", cookie);
  expect([usual.headers.get("location"), usual.headers.get("set-cookie")]).toEqual([
    `${path}?sort=due`,
    expect.stringContaining("Max-Age=0"),
  ]);
});

test("what is filtered is downloaded, as CSV without formulas and as JSON", async () => {
  const csv = await page("/tasks/download?format=csv&f=status&o=is&v=Planned&col=notes&col=estimate");
  expect(csv.headers.get("content-disposition")).toContain("tasks.csv");
  expect(csv.text.startsWith("id,title,estimate,notes\r\n")).toBe(true);
  expectPart(csv.text, "'=1+1");
  expect(csv.text.match(/^recTask/gm)).toHaveLength(58);
  const all = await page("/tasks/download?format=json&sort=estimate");
  const rows = JSON.parse(all.text) as { id: string; estimate: number | null; areas: string[] }[];
  expect(rows).toHaveLength(TASKS);
  // Without a choice a file has every column, also those for which the grid has no room.
  const [first] = await (await fleet.owner(base))`select * from tasks limit 1`;
  expect(Object.keys(rows[0]!).toSorted()).toEqual(Object.keys(first!).toSorted());
  const estimates = rows.map(({ estimate }) => estimate ?? Number.POSITIVE_INFINITY);
  expect(estimates).toEqual(estimates.toSorted((one, other) => one - other));
  expect(rows[0]!.areas).toBeInstanceOf(Array);
  expect((await page("/tasks/download?f=estimate&o=gte&v=many")).status).toBe(422);
});

test("another account's base is not found, and the browser's connection cannot write", async () => {
  const other = await createAccount(fleet.ctx.db, {
    email: "browser-other@example.org",
    password: "correct horse",
  });
  for (const path of ["", "/tasks", "/tasks/recTask0000000001", "/tasks/download?format=csv"]) {
    const answer = await page(path, other);
    expect([path, answer.status]).toEqual([path, 404]);
    expect(answer.text).not.toContain("Website");
  }
  const database = await getDatabase(fleet.ctx.db, base.database.id);
  const sql = await readerPool(fleet.ctx, database);
  const [session] =
    await sql`select current_user as role, pg_has_role(current_user, relowner, 'usage') as owns
    from pg_class where oid = 'public.tasks'::regclass`;
  expect(session).toEqual({ role: consoleRoleOf(database.role), owns: false });
  await expect(sql`delete from public.tasks`).rejects.toMatchObject({ code: "25006" });
  // Also where the role may create tables of its own.
  await setWritable(hostedUrl((await replicaTarget(fleet.ctx, base)).url), database.role, "public", true);
  const writable = await readerPool(fleet.ctx, database);
  await expect(writable`create table public.mine (id int)`).rejects.toMatchObject({ code: "25006" });
});

test("columns of any type that the server's administrator added are shown, sorted and filtered as text", async () => {
  const admin = await fleet.owner(base);
  const types = ["jsonb", "json", "uuid", "inet", "point", "timestamptz", "int[]", "xml"];
  const added = types.map((type, index) => `add column added_${index} ${type}`);
  await admin.unsafe(`alter table tasks ${added.join(", ")}`);
  await admin.unsafe(`
    update tasks set added_0 = '{"a": 1}', added_1 = '{"b": 2}', added_2 = gen_random_uuid(), added_3 = '10.0.0.7',
      added_4 = '(1,2)', added_5 = '2026-01-02 03:04:05+00', added_6 = '{4,5}', added_7 = '<c/>'
    where id <> (select max(id) from tasks)`);
  const columns = types.map((_, index) => `added_${index}`);
  try {
    for (const [index, part] of [
      `{"a": 1}`,
      `{"b": 2}`,
      "-",
      "10.0.0.7",
      "(1,2)",
      "2026-01-02",
      "{4,5}",
      "c/",
    ].entries()) {
      const query = new URLSearchParams({
        sort: columns[index]!,
        f: columns[index]!,
        o: "contains",
        v: part,
      });
      for (const column of columns) query.append("col", column);
      const found = await page(`/tasks?${query}`);
      expect([part, found.status]).toEqual([part, 200]);
      expect(idsIn(found.text)).toHaveLength(100);
      const next = /rel="next"[^>]*href="([^"]+)"/.exec(found.text)![1]!.replaceAll("&amp;", "&");
      expect(idsIn((await ask(next, { account: owner })).text)).toHaveLength(100);
    }
    expect((await page("/tasks/recTask0000000001")).status).toBe(200);
    expect((await page("/tasks/download?format=csv&sort=added_0&col=added_4")).text).toContain("(1,2)");
  } finally {
    await admin.unsafe(`alter table tasks ${columns.map((name) => `drop column ${name}`).join(", ")}`);
  }
});

test("a base without tables, and a database that refuses the login, say what to do", async () => {
  const source = fleet.sandbox.control.createBase({ name: "Later", tables: [] });
  const later = await fleet.connect(source, { paused: true });
  expectPart((await ask(`/bases/${later.id}/data`, { account: owner })).text, "No tables yet");

  const role = consoleRoleOf((await getDatabase(fleet.ctx.db, base.database.id)).role);
  const admin = await fleet.owner(base);
  await closeReaders();
  await admin.unsafe(`alter role "${role}" connection limit 0`);
  const full = await page("/tasks");
  expect(full.status).toBe(503);
  expectPart(full.text, "All connections that the console may open to this database are in use");
  await admin.unsafe(`alter role "${role}" connection limit 10 password 'changed'`);
  const refused = await page("/tasks");
  expect(refused.status).toBe(422);
  expectPart(refused.text, "Rotate the password under Connect");
  // The way to other tables stays.
  expectPart(refused.text, 'aria-label="Tables"');
});

/** A table with empty cells, equal cells, and a name that must be quoted. */
const NAMED: BrowsedTable = (() => {
  const column = (name: string, kind: BrowsedColumn["kind"]): BrowsedColumn => ({
    name,
    sourceName: name,
    fieldId: name === "id" || name === "created_time" ? undefined : name,
    kind,
    shownAs: undefined,
    display: undefined,
    isIndexed: false,
    link: undefined,
  });
  const columns = [
    column("id", "text"),
    column("created_time", "time"),
    column(`t"; drop table "rows" --`, "text"),
    column("select", "list"),
    column("n", "number"),
    column("c", "checkbox"),
    column("d", "date"),
    column("$1", "time"),
  ];
  return {
    schema: "public",
    name: `ro'ws" "`,
    sourceName: "Rows",
    tableId: undefined,
    columns,
    primary: columns[2]!,
  };
})();

const oneOf = <T>(...values: T[]) => fc.constantFrom<T | null>(null, null, ...values);
const anyRow = fc.tuple(
  oneOf("", "a", "b", "B", "é"),
  oneOf<string[]>([], ["x"], ["x", "y"]),
  oneOf(1, 2, -3.5),
  oneOf(true, false),
  oneOf("2026-01-01", "2026-01-02"),
  oneOf("2026-01-01 10:00", "2026-01-01 10:00:00.5"),
);
const anyFilter = fc.constantFrom(...NAMED.columns).chain((column) =>
  fc.record({
    column: fc.constant(column.name),
    operator: fc.constantFrom(...OPERATORS_OF[column.kind]),
    value:
      column.kind === "number"
        ? fc.constantFrom("1", "-3.5", "2")
        : column.kind === "date" || column.kind === "time"
          ? fc.constantFrom("2026-01-01", "2026-01-02")
          : anyText,
  }),
);

let rows: Awaited<ReturnType<typeof freshDatabase>>;
beforeAll(async () => {
  rows = await freshDatabase();
  await rows.sql.unsafe(`create table "ro'ws"" """ (id text primary key, created_time timestamp not null default '2026-01-01',
    "t""; drop table ""rows"" --" text, "select" text[], n numeric, c bool, d date, "$1" timestamp)`);
});
afterAll(() => rows?.[Symbol.asyncDispose]());

fuzz(
  "any filter and any order reads each matching row exactly once, forward and back",
  25,
  fc.asyncProperty(
    fc.array(anyRow, { maxLength: 30 }),
    fc.array(anyFilter, { maxLength: 2 }),
    fc.constantFrom(...NAMED.columns),
    fc.boolean(),
    fc.integer({ min: 1, max: 7 }),
    fc.constantFrom("", "", "a", "1", "2026", "%"),
    async (cells, filters, sorted, isDescending, limit, search) => {
      const { sql } = rows;
      await sql.unsafe(`truncate "ro'ws"" """`);
      for (const [index, row] of cells.entries()) {
        const values = [`rec${index}`, ...row] as string[];
        await sql.unsafe(
          `insert into "ro'ws"" """ (id, "t""; drop table ""rows"" --", "select", n, c, d, "$1") values ($1, $2, array(select json_array_elements_text($3::text::json)), $4, $5, $6, $7)`,
          [...values.slice(0, 2), JSON.stringify(row[1] ?? []), ...values.slice(3)],
        );
      }
      const selection = { filters, sort: { column: sorted.name, isDescending }, search };
      const read = (cursor: Parameters<typeof browseRows>[4]["cursor"], most: number) =>
        browseRows(sql, NAMED, [sorted], selection, { cursor, limit: most, form: "whole" });
      const whole = (await read(undefined, 1000)).map(([id]) => id as string);
      expect(new Set(whole).size).toBe(whole.length);
      const forward: string[] = [];
      const valued: string[] = [];
      for (let last: unknown[] | undefined; ; ) {
        const page_ = await read(last && { id: last[0] as string, isBefore: false }, limit);
        const same = await read(
          last && { id: last[0] as string, isBefore: false, value: last[1] as string | null },
          limit,
        );
        valued.push(...same.map(([id]) => id as string));
        forward.push(...page_.map(([id]) => id as string));
        last = page_.at(-1);
        if (page_.length < limit) break;
      }
      expect(forward).toEqual(whole);
      expect(valued).toEqual(whole);
      const back: string[] = [];
      for (let first = whole.at(-1); first; ) {
        const page_ = (await read({ id: first, isBefore: true }, limit)).map(([id]) => id as string);
        back.push(...page_);
        first = page_.at(-1);
      }
      expect(back.toReversed()).toEqual(whole.slice(0, -1));
      if (filters.length === 0 && search === "") expect(whole).toHaveLength(cells.length);
    },
  ),
);
