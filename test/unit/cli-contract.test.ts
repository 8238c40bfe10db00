/** `basetide.yaml`: what is written is read back as the same, comments stay, and errors have their line. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type ApiSchemas, apiFacts, createApiClient, dataOf } from "../../apps/cli/client";
import { ContractError, parseContract } from "../../apps/cli/contract/parse";
import { planContract, unlisted } from "../../apps/cli/contract/plan";
import { pulled } from "../../apps/cli/contract/pull";
import type { AccountState } from "../../apps/cli/contract/state";
import { fuzz } from "../support/fuzz";

const anySettings = fc.record(
  Object.fromEntries(
    Object.entries(apiFacts.settings).map(([name, limits]) => [
      name,
      limits.type === "boolean" ? fc.boolean() : fc.integer({ min: limits.minimum, max: limits.maximum }),
    ]),
  ),
);
const anyName = fc.oneof(
  fc.string({ minLength: 1, maxLength: 20, unit: "grapheme" }),
  fc.constantFrom("null", "yes", "- a", "a: b", "# c", '"', "'", "{}", `\${X}`, "1e3", "~", "😀"),
);
const anyIndexes = fc.array(
  fc.record({
    table: fc.constantFrom("tasks", "größe", "2024"),
    column: fc.constantFrom("name", "due_date"),
    kind: fc.constantFrom("default", "trigram"),
  }),
  { maxLength: 3 },
);
const anyOwnNames = fc.uniqueArray(
  fc.record({
    table_id: fc.constantFrom("tblA", "tblB"),
    field_id: fc.constantFrom("fldA", "fldB", null),
    name: fc.stringMatching(/^[a-zé_]{1,12}$/),
  }),
  { maxLength: 3, selector: ({ name }) => name, comparator: "IsStrictlyEqual" },
);
const anyFields = (...ids: string[]) => fc.subarray(ids);
const anySelection = fc.record({
  new_tables: fc.constantFrom("copy", "ask", "ignore"),
  tables: fc.uniqueArray(
    fc.record({
      table_id: fc.constantFrom("tblA", "tblB", "tblC"),
      copied: fc.boolean(),
      view_id: fc.constantFrom(null, "viwA"),
      omitted_fields: anyFields("fldA", "fldB"),
      hashed_fields: anyFields("fldC", "fldD"),
    }),
    { maxLength: 3, selector: ({ table_id }) => table_id },
  ),
});
const anyKinds = fc.subarray([...apiFacts.alertKinds]);
/** The first of each id. */
function oneEach<One extends { table_id: string; field_id: string | null }>(all: One[]): One[] {
  return [...new Map(all.toReversed().map((one) => [`${one.table_id} ${one.field_id}`, one])).values()];
}
const anyState: fc.Arbitrary<AccountState> = fc
  .record({
    names: fc.uniqueArray(anyName, { maxLength: 4 }),
    bases: fc.uniqueArray(
      fc.record({
        id: fc.stringMatching(/^app[a-z]{3}$/),
        name: anyName,
        settings: anySettings,
        indexes: anyIndexes,
        ownNames: anyOwnNames,
        muted: fc.subarray(["fldA", "fldB", "fldC"]),
        selection: anySelection,
        workspace: fc.nat(5),
      }),
      {
        maxLength: 5,
        selector: ({ id }) => id,
      },
    ),
    members: fc.uniqueArray(fc.record({ email: fc.emailAddress(), kinds: anyKinds }), {
      maxLength: 3,
      selector: ({ email }) => email,
    }),
    webhooks: fc.uniqueArray(fc.record({ name: anyName, kinds: anyKinds, on: fc.boolean() }), {
      maxLength: 3,
      selector: ({ name }) => name,
    }),
  })
  .map(({ names, bases, members, webhooks }) => {
    const workspaces = names.map((name, index) => ({
      ...{ id: `wsp_${index}`, name, plan: index % 2 ? "custom" : "team" },
      ...{ calls_per_month: index % 2 ? 1000 + index : 100_000, reserve: 10 * index },
    }));
    return {
      workspaces,
      bases: bases.map(({ id, name, settings, selection, indexes, ownNames, muted, workspace }, index) => ({
        ...{ id: `bas_${index}`, base_id: id, name, platform: "airtable" },
        settings: {
          ...{ ...settings, indexes, own_names: oneEach(ownNames) },
          muted_fields: muted.map((field_id) => ({ table_id: "tblA", field_id })),
        },
        tables: [{ name: "tasks" }],
        selection,
        database: { id: `dat_${index}`, schema: "public" },
        budget: workspaces[workspace] ? { workspace_id: workspaces[workspace].id } : null,
      })),
      alerts: {
        members: members.map(({ email, kinds }, index) => ({ user_id: `usr_${index}`, email, kinds })),
        webhooks: webhooks.map((one, index) => ({ ...one, id: `whk_${index}`, form: "json" })),
        messages: [],
      },
      available: new Map(),
    } as unknown as AccountState;
  });

fuzz(
  "a file that was pulled differs in nothing from the account, and a second pull changes no byte",
  25,
  fc.property(anyState, anyState, (state, other) => {
    const text = pulled(state, new Map());
    const parsed = parseContract(text, "basetide.yaml");
    expect(planContract(parsed, state, { prune: true })).toEqual([]);
    expect(unlisted(parsed.contract, state)).toEqual([]);
    expect(pulled(state, new Map(), parseContract(text, "basetide.yaml"))).toBe(text);
    // From another account's file, too: what is gone is removed, and what is new is added.
    const changed = parseContract(
      pulled(state, new Map(), parseContract(pulled(other, new Map()), "f")),
      "f",
    );
    expect(planContract(changed, state, { prune: true })).toEqual([]);
  }),
);

const state = {
  workspaces: [{ id: "wsp_1", name: "Marketing", plan: "team", calls_per_month: 100_000, reserve: 20_000 }],
  bases: [
    {
      ...{
        id: "bas_1",
        base_id: "appA",
        name: "Projects",
        platform: "airtable",
        budget: { workspace_id: "wsp_1" },
      },
      ...{
        database: { id: "dat_1", schema: "public" },
        settings: { live: true, turbo: false, lookups_as_text: false, indexes: [] },
        tables: [{ name: "tasks" }],
      },
    },
  ],
  alerts: {
    members: [{ user_id: "usr_1", email: "a@example.org", kinds: ["red"] }],
    webhooks: [],
    messages: [],
  },
  available: new Map(),
} as unknown as AccountState;

const FILE = `# Ours.
version: 1
bases:
  # The most important one.
  - base: appA # projects
    settings:
      turbo: true # until May
      lookups_as_text: true
    workspace: null
alerts:
  members:
    a@example.org: [call_budget, red]
`;

test("a plan names what changes with its line, and what rebuilds tables", () => {
  const steps = planContract(parseContract(FILE, "f.yaml"), state, { prune: false });
  expect(steps).toMatchObject([
    {
      effect: "change",
      what: "base Projects (appA)",
      line: 7,
      isGrave: true,
      change: { turbo: true, lookups_as_text: true, workspace: null },
      details: [
        "workspace: Marketing -> none",
        "settings.turbo: false -> true",
        "settings.lookups_as_text: false -> true",
      ],
    },
    {
      what: "e-mail alerts",
      line: 12,
      isGrave: false,
      change: { members: [{ user_id: "usr_1", kinds: ["call_budget", "red"] }] },
    },
  ]);
});

test("a pull keeps comments and the order, and writes only what differs", () => {
  const text = pulled(state, new Map([["bas_1", "2026-05-01T00:00:00.000Z"]]), parseContract(FILE, "f.yaml"));
  expect(text).toContain("# Ours.\nversion: 1\n");
  expect(text).toContain("  # The most important one.\n  - base: appA # projects\n");
  expect(text).toContain("      turbo: false # until May\n      lookups_as_text: false\n");
  expect(text).toContain("workspace: Marketing\n");
  expect(text).toContain("    a@example.org: [red]\n");
  expect(text).toContain("schema_as_of: 2026-05-01T00:00:00.000Z");
});

test("indexes are compared as a set, and wait for the tables of a new base", () => {
  const text = "version: 1\nbases:\n  - base: appA\n    indexes: [tasks.name trigram, tasks.due]\n";
  const change = {
    indexes: [
      { table: "tasks", column: "name", kind: "trigram" },
      { table: "tasks", column: "due", kind: "default" },
    ],
  };
  const [base] = state.bases;
  const withBase = (changes: object) => ({ ...state, bases: [{ ...base!, ...changes }] }) as AccountState;
  const plan = (given: AccountState) => planContract(parseContract(text, "f.yaml"), given, { prune: false });
  expect(plan(state)).toMatchObject([{ line: 4, isGrave: false, change }]);
  expect(plan(withBase({ settings: { indexes: change.indexes.toReversed() } }))).toEqual([]);
  const starting = withBase({ tables: [] });
  expect(plan(starting)).toEqual([]);
  expect(pulled(starting, new Map(), parseContract(text, "f.yaml"))).toContain("tasks.name trigram");
  expect(pulled(state, new Map(), parseContract(text, "f.yaml"))).not.toContain("indexes");
});

test("own names are compared by id, and two columns of one name are an error at their line", () => {
  const [base] = state.bases;
  const own_names = [{ table_id: "tblA", field_id: "fldA", name: "due" }];
  const given = {
    ...state,
    bases: [{ ...base!, tables: [{ name: "t", source_id: "tblA" }], settings: { own_names } }],
  } as unknown as AccountState;
  const head = "version: 1\nbases:\n  - base: appA\n    own_names:\n";
  const plan = (names: string) =>
    planContract(parseContract(`${head}${names}`, "f.yaml"), given, { prune: false });
  expect(plan("      tblA.fldA: due\n")).toEqual([]);
  expect(plan("      tblA.fldA: due\n      tblA: things\n")).toMatchObject([
    {
      line: 6,
      isGrave: false,
      details: ['own_names.tblA: null -> "things"'],
      change: { own_names: [own_names[0], { table_id: "tblA", field_id: null, name: "things" }] },
    },
  ]);
  expect(() => plan("      tblA.fldA: due\n      tblA.fldB: due\n")).toThrow("f.yaml:6: due is already");
  expect(() => plan("      tblB: things\n")).toThrow("f.yaml:5: there is no table tblB");
  const before = parseContract(`${head}      tblA.fldA: date # ours\n      tblA: gone\n`, "f.yaml");
  const text = pulled(given, new Map(), before);
  expect(text).toContain("      tblA.fldA: due # ours\n");
  expect(text).not.toContain("gone");
});

test("muted fields are compared by id, in any order", () => {
  const [base] = state.bases;
  const muted_fields = [{ table_id: "tblA", field_id: "fldA" }];
  const given = {
    ...state,
    bases: [{ ...base!, tables: [{ name: "t", source_id: "tblA" }], settings: { muted_fields } }],
  } as unknown as AccountState;
  const plan = (list: string) =>
    planContract(
      parseContract(`version: 1\nbases:\n  - base: appA\n    muted_fields: ${list}\n`, "f.yaml"),
      given,
      {
        prune: false,
      },
    );
  expect(plan("[tblA.fldA, tblA.fldA]")).toEqual([]);
  expect(plan("[tblB.fldB, tblA.fldA]")).toMatchObject([
    {
      line: 4,
      isGrave: false,
      details: ['muted_fields: ["tblA.fldA"] -> ["tblA.fldA","tblB.fldB"]'],
      change: { muted_fields: [...muted_fields, { table_id: "tblB", field_id: "fldB" }] },
    },
  ]);
  expect(plan("[]")).toMatchObject([{ change: { muted_fields: [] } }]);
  expect(() => plan("[fldA]")).toThrow("f.yaml:4: bases.0.muted_fields.0 is not a field: write tbl….fld…");
});

const field = (field_id: string, name: string, type: string, primary = false) => ({
  ...{ field_id, name, type, is_primary: primary },
  may_be_hashed: type !== "multipleRecordLinks",
});
const AVAILABLE: ApiSchemas["SelectableTable"][] = [
  {
    ...{ table_id: "tblA", name: "Contacts", views: [{ view_id: "viwA", name: "Open ones" }] },
    fields: [
      field("fldName", "Name", "singleLineText", true),
      field("fldMail", "E-mail", "email"),
      field("fldNotes", "Notes", "multilineText"),
      field("fldTasks", "Tasks", "multipleRecordLinks"),
    ],
  },
  { table_id: "tblB", name: "Salaries", views: [], fields: [field("fldS", "Name", "singleLineText", true)] },
];

/** What the plan says of a file with this selection, for a base with the other one. */
function selecting(lines: string[], selection: ApiSchemas["Selection"] = { new_tables: "copy", tables: [] }) {
  const given = {
    ...state,
    bases: [{ ...state.bases[0]!, selection }],
    available: new Map([["bas_1", AVAILABLE]]),
  };
  const text = [
    "version: 1",
    "bases:",
    "  - base: appA",
    "    selection:",
    ...lines.map((line) => `      ${line}`),
  ];
  const parsed = () => parseContract(`${text.join("\n")}\n`, "f.yaml");
  return {
    plan: () => planContract(parsed(), given, { prune: false }),
    pull: () => pulled(given, new Map(), parsed()),
  };
}

test("a selection names tables, views and fields by name or id; what drops or rebuilds is asked before", () => {
  const chosen = [
    "new_tables: ask",
    "tables:",
    "  Contacts: {view: Open ones, omitted: [Notes], hashed: [fldMail]} # ours",
    "  tblB: false",
  ];
  const selection: ApiSchemas["Selection"] = {
    new_tables: "ask",
    tables: [
      {
        table_id: "tblA",
        copied: true,
        view_id: "viwA",
        omitted_fields: ["fldNotes"],
        hashed_fields: ["fldMail"],
      },
      { table_id: "tblB", copied: false, view_id: null, omitted_fields: [], hashed_fields: [] },
    ],
  };
  expect(selecting(chosen).plan()).toMatchObject([
    {
      line: 7,
      isGrave: true,
      details: [
        "selection.new_tables: copy -> ask",
        "selection.Contacts: all records -> Open ones",
        "selection.Contacts.E-mail: copied -> hashed",
        "selection.Contacts.Notes: copied -> omitted",
        "selection.Salaries: copied -> not copied",
      ],
      change: { selection },
    },
  ]);
  // The same by names: nothing to do, and a pull keeps them with their comments.
  expect(selecting(chosen, selection).plan()).toEqual([]);
  expect(selecting(chosen, selection).pull()).toContain(chosen[2]!);
  const other = { ...selection, tables: [{ table_id: "tblA", copied: false }] };
  expect(selecting(chosen, other).pull()).toContain("tblA: false");
  // A further table, or another rule for new ones, reads and drops nothing that is there.
  const [isAdded] = selecting(["new_tables: ignore", "tables:", "  tblA: true", "  Salaries: true"], {
    new_tables: "ignore",
    tables: [{ table_id: "tblA", copied: true }],
  }).plan();
  expect(isAdded).toMatchObject({
    line: 8,
    isGrave: false,
    details: ["selection.Salaries: not copied -> copied"],
  });
  const rule = selecting(["new_tables: ignore", "tables: {tblA: true, tblB: true}"]).plan();
  expect(rule).toMatchObject([{ isGrave: false, details: ["selection.new_tables: copy -> ignore"] }]);
  expect(selecting(["new_tables: ignore", "tables: {tblA: true}"]).plan()).toMatchObject([{ isGrave: true }]);
});

test.each([
  [
    ["tables:", "  Contact: true"],
    6,
    "there is no table Contact in the base. Correct it, or remove it; it has Contacts",
  ],
  [["tables:", "  Contacts: true", "  tblA: {omitted: [Notes]}"], 7, "is a table that is listed before"],
  [
    ["tables:", "  tblA:", "    view: Closed ones"],
    7,
    "there is no view Closed ones in Contacts. Correct it, or remove",
  ],
  [
    ["tables:", "  tblA:", "    omitted:", "      - Notes", "      - Nots"],
    9,
    "there is no field Nots in Contacts",
  ],
  [
    ["tables:", "  tblA:", "    omitted: [Notes]", "    hashed: [fldNotes]"],
    8,
    "is listed twice. Omit it or hash it",
  ],
  [["tables:", "  tblA: {omitted: [Name]}"], 6, "is the primary field"],
  [["tables:", "  tblA: {hashed: [Tasks]}"], 6, "cannot be hashed. Omit it"],
  [["new_tables: ignore", "tables: {tblA: false}"], 4, "no table would be copied. Choose at least one"],
  [["new_tables: never"], 5, "selection.new_tables"],
  [["tables:", "  tblA:", "    omited: [Notes]"], 7, "omited is not known"],
])("a selection that cannot be has an error with its line: %j", (lines, line, message) => {
  let problems: unknown;
  try {
    selecting(lines).plan();
  } catch (error) {
    problems = (error as ContractError).problems;
  }
  expect(problems).toMatchObject([{ line, message: expect.stringContaining(message) }]);
});

test("what the file does not list is deleted only on request, and what it does not mention, never", () => {
  const plan = (text: string, prune: boolean) =>
    planContract(parseContract(text, "f.yaml"), state, { prune }).map(({ effect, what, isGrave }) => [
      effect,
      what,
      isGrave,
    ]);
  expect(plan("version: 1\nbases: []\n", false)).toEqual([]);
  expect(plan("version: 1\nbases: []\n", true)).toEqual([["delete", "base Projects (appA)", true]]);
  expect(plan("version: 1\n", true)).toEqual([]);
});

test("two webhooks of one name cannot be told apart in a file", () => {
  const webhooks = [1, 2].map((id) => ({ id: `whk_${id}`, name: "Ops", form: "json", kinds: [], on: true }));
  const given = { ...state, alerts: { ...state.alerts, webhooks } } as unknown as AccountState;
  expect(() => pulled(given, new Map())).toThrow("Two webhooks are called Ops");
});

test("the client sends a call again when the service asks it to wait, and reports any other answer", async () => {
  const answers = [
    new Response("{}", { status: 429, headers: { "retry-after": "0" } }),
    Response.json([{ id: "airtable" }]),
    Response.json({ error: { code: "forbidden", message: "No", request_id: "req_1" } }, { status: 403 }),
  ];
  const sent: string[] = [];
  const client = createApiClient({
    ...{ url: "https://console.example.com/", token: "bt_1" },
    async fetch(request) {
      sent.push(`${request.method} ${request.url} ${request.headers.get("authorization")}`);
      return answers.shift()!;
    },
  });
  expect(await dataOf(client.GET("/api/v1/platforms"))).toEqual([{ id: "airtable" }]);
  expect(sent).toEqual(Array(2).fill("GET https://console.example.com/api/v1/platforms Bearer bt_1"));
  await expect(client.GET("/api/v1/platforms")).rejects.toMatchObject({
    ...{ code: "forbidden", status: 403, requestId: "req_1" },
  });
});

test.each([
  ["version: 1\nbases: [\n", 3],
  ["version: 1\nversion: 1\n", 2],
  ["version: 1\nbases:\n  - base: appA\n    indexes: [tasks.name, nothing.x]\n", 4],
  ["version: 1\nbases:\n  - base: appA\n    indexes: [name]\n", 4],
  ["version: 1\nbases:\n  - base: appA\n    api_key: patSECRET\n", 4],
  ["version: 1\nbases:\n  - base: appA\n    settings:\n      turbo: true\n      liev: true\n", 6],
  ["version: 1\nbases:\n  - base: appA\n  - base: appB\n  - base: appA\n", 5],
  ["version: 1\nbases:\n  - base: appA\n    settings: {history_days: 0}\n", 4],
  ["# later\nversion: 2\n", 2],
  ["version: 1\nbases:\n  - base: appNew\n", 3],
  ["version: 1\nbases:\n  - base: appA\n    workspace: None of them\n", 4],
  [
    "version: 1\nbases:\n  - base: appA\n    destination: {kind: existing, database_id: dat_2, schema: x}\n",
    4,
  ],
  ["version: 1\nalerts:\n  members:\n    b@example.org: [red]\n", 4],
])("an error has its line: %j", (text, line) => {
  let problems: unknown;
  try {
    planContract(parseContract(text, "f.yaml"), state, { prune: false });
  } catch (error) {
    expect(error).toBeInstanceOf(ContractError);
    problems = (error as ContractError).problems;
  }
  expect(problems).toMatchObject([{ line, message: expect.stringMatching(/./) }]);
});
