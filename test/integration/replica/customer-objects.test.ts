/**
 * Every kind of object that customers hang on a table, through every change of the table: it is as it was, or
 * `_sync_issues` has it with its statements. The table in docs/customer-objects.md is what this finds
 * (`UPDATE_DOCS=1` writes it), on Postgres 18; older versions are compared with that table. Tables that only get columns are
 * merged and not swapped; here they are swapped, too.
 */
import { readFileSync, writeFileSync } from "node:fs";
import type postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import {
  changeShape,
  claimEpoch,
  foreignNames,
  installReplica,
  loadCatalog,
  planSchema,
  settleDependents,
  startBuild,
} from "../../../core/replica";
import type { FieldType, SourceTable } from "../../../core/source";
import { type CustomerObject, OBJECTS, PREPARATION } from "../../support/customer-objects";
import { type OwnDatabase, ownDatabase } from "../../support/own-database";
import { putBuild } from "../../support/put-build";
import { type PostgresServer, postgresServer } from "../../support/servers/postgres-server";
import { POSTGRES_VERSIONS } from "../../support/servers/postgres-versions";

vi.setConfig({ testTimeout: 120_000 });

type Fields = Record<string, [name: string, type: FieldType]>;

const FIELDS: Fields = {
  fld0: ["Price", "number"],
  fld1: ["Note", "text"],
  fld2: ["Tags", "links"],
  fld3: ["Spare", "text"],
  fld4: ["Last", "text"],
};
const { fld1: _note, ...WITHOUT_NOTE } = FIELDS;
const { fld4: _last, ...WITHOUT_LAST } = FIELDS;

interface Change {
  name: string;
  steps: {
    fields?: Fields;
    table?: string;
    linkedRecordsAsText?: boolean;
    gone?: boolean;
    again?: boolean;
  }[];
  /** Definitions have other names in them afterwards: only whether it is there counts. */
  inPlace?: boolean;
  /** Texts in the objects' states that have become others. */
  renamed?: Record<string, string>;
  /** Everything fits still: the statements of what is reported bring it back. */
  again?: boolean;
  /** What there is nothing to be told of, and why. */
  moot?: Record<string, string>;
}

const TEXT_BODY = {
  "function with a text body": "its text names the old name",
  "function returns setof": "its text names the old name",
};
const CHANGES: Change[] = [
  { name: "field added", steps: [{ fields: { ...FIELDS, fld5: ["New", "text"] } }] },
  {
    name: "field renamed",
    steps: [{ fields: { ...FIELDS, fld1: ["Remark", "text"] } }],
    inPlace: true,
    renamed: { "'note'": "'remark'" },
  },
  { name: "another field retyped", steps: [{ fields: { ...FIELDS, fld4: ["Last", "number"] } }] },
  { name: "its field retyped", steps: [{ fields: { ...FIELDS, fld0: ["Price", "text"] } }] },
  { name: "another field deleted", steps: [{ fields: WITHOUT_LAST }] },
  { name: "its field deleted", steps: [{ fields: WITHOUT_NOTE }] },
  { name: "all rows replaced", steps: [{ again: true }], again: true },
  { name: "setting changed", steps: [{ linkedRecordsAsText: true }] },
  { name: "table renamed", steps: [{ table: "Purchases" }], inPlace: true, moot: TEXT_BODY },
  {
    name: "table deleted",
    steps: [{ gone: true }],
    moot: {
      ...TEXT_BODY,
      "planner's statistics": "of no table",
      "publication of the schema": "has all tables that there are",
    },
  },
  { name: "table restored", steps: [{ gone: true }, {}] },
];

function sourceOf(fields: Fields, name = "Orders"): SourceTable {
  return {
    id: "tblO",
    name,
    primaryFieldId: "fld0",
    fields: Object.entries(fields).map(([id, [fieldName, type]]) => ({
      id,
      name: fieldName,
      type,
      sourceType: type,
    })),
  };
}

/** Brings the replica to a step, as a sync does. */
async function take({ test: { replica, epoch } }: OwnDatabase, step: Change["steps"][number]): Promise<void> {
  const settings = { linkedRecordsAsText: step.linkedRecordsAsText ?? false, lookupsAsText: false };
  const tables = step.gone ? [] : [sourceOf(step.fields ?? FIELDS, step.table)];
  const catalog = await loadCatalog(replica);
  const plan = planSchema(catalog, { tables }, settings, await foreignNames(replica, []));
  await changeShape(replica, epoch, catalog, plan);
  const specs = step.again ? [catalog.get("tblO")!.spec] : plan.rebuild;
  for (const spec of specs) {
    const build = await startBuild(replica, epoch, spec);
    const cell = (type: string) => ({ numeric: 5, "text[]": ["five"] })[type] ?? "five";
    const cells = Object.fromEntries(spec.columns.map((column) => [column.name, cell(column.columnType)]));
    await build.append([{ id: "rec1", created_time: "2024-05-01T12:34:56", ...cells }]);
    const live = (await loadCatalog(replica)).get("tblO");
    expect(await putBuild({ replica, epoch }, build, live)).toBe(true);
  }
  await settleDependents(replica);
}

type Found = "stays" | "reported" | "kept" | "moot" | "LOST";

const MARK: Record<Found, string> = {
  stays: "✓",
  reported: "reported",
  kept: "kept",
  moot: "–",
  LOST: "LOST",
};

async function stateOf(sql: postgres.Sql, state: string): Promise<string | null> {
  const rows = await sql
    .unsafe<{ state: string | null }[]>(`select (${state})::text as state`)
    .catch(() => []);
  return rows[0]?.state ?? null;
}

/**
 * Makes all objects on a fresh table, changes it, and says what has become of each.
 *
 * @param server a superuser's URL; the test server's unless given
 */
async function fateOf(
  change: Change,
  isSuperuser: boolean,
  server?: string,
): Promise<Map<CustomerObject, [Found, string]>> {
  const made = await ownDatabase({ Price: "number" }, server);
  const { customer, other, admin, otherRole, ownerRole, sql } = made;
  if (isSuperuser) await admin.unsafe(`alter role ${ownerRole} superuser`);
  await made.drop();
  await installReplica(made.test.ownerUrl, { schema: "airtable", role: ownerRole });
  made.test.epoch = await claimEpoch(made.test.replica);
  await take(made, {});
  await sql`delete from airtable._sync_issues`.catch(() => {});
  const fill = (text: string, { table = "orders" } = {}) =>
    text
      .replaceAll("OTHER", otherRole)
      .replaceAll("_TAG", `_${otherRole}`)
      .replaceAll("airtable.orders", `airtable.${table}`)
      .replaceAll("tablename = 'orders'", `tablename = '${table}'`);
  await customer.unsafe(fill(PREPARATION));
  await other.unsafe(
    `create function airtable.theirs() returns trigger language plpgsql as 'begin return new; end'`,
  );
  for (const { make, by } of OBJECTS)
    await { owner: customer, other, admin }[by ?? "owner"].unsafe(fill(make));
  const before = new Map<CustomerObject, string | null>();
  for (const object of OBJECTS) before.set(object, await stateOf(admin, fill(object.state)));
  expect(OBJECTS.filter((object) => before.get(object) === null).map(({ kind }) => kind)).toEqual([]);

  for (const step of change.steps) await take(made, step);
  const table = change.steps.at(-1)!.table?.toLowerCase() ?? "orders";
  const [live] = await sql`select to_regclass(${`airtable.${table}`}) as name`;
  if (live!.name !== null) {
    const columns = await sql<{ name: string; array: boolean; number: boolean }[]>`
      select attname as name, atttypid = 'text[]'::regtype as array, atttypid = 'numeric'::regtype as number from pg_attribute
      where attrelid = ${`airtable.${table}`}::regclass and attnum > 2 and attgenerated = '' and attname not in ('n', 's', 'mine', 'region')
        and not attisdropped`;
    const row = Object.fromEntries(
      columns.map(({ name, array, number }) => [name, array ? ["six"] : number ? 6 : "six"]),
    );
    await sql`insert into airtable.${sql(table)} ${sql({ id: "recNew", created_time: "2024-05-01T12:34:56", ...row })}`;
    await settleDependents(made.test.replica);
  }
  const issues = await sql<{ label: string; value: string; reason: string }[]>`
    select table_name || '|' || field as label, value, reason from airtable._sync_issues where record_id = ''`;
  const found = new Map<CustomerObject, [Found, string]>();
  for (const object of OBJECTS) {
    const state = Object.entries(change.renamed ?? {}).reduce(
      (text, [from, to]) => text.replaceAll(from, to),
      object.state,
    );
    const after = await stateOf(admin, fill(state, { table }));
    const isSame = change.inPlace ? after !== null : after === before.get(object);
    const named = issues.filter(({ label }) =>
      object.issue.test(
        label
          .replace(new RegExp(`^${table}\\|`), "orders|")
          .replaceAll(`airtable.${table}`, "airtable.orders"),
      ),
    );
    const isReported = named.length > 0 && named.every(({ value }) => value !== "");
    const isKept = issues.some(({ label }) => /^airtable_swap\._kept_\d+\|objects$/.test(label));
    const fate =
      isSame && named.length === 0
        ? "stays"
        : isReported
          ? "reported"
          : change.moot?.[object.kind]
            ? "moot"
            : isKept && !/^view|^materialized/.test(object.kind)
              ? "kept"
              : "LOST";
    found.set(object, [
      fate,
      `${before.get(object)} → ${after}; ${named.map(({ value, reason }) => `${reason}: ${value}`).join("\n")}`,
    ]);
  }
  if (change.again) {
    for (const [object, [fate]] of found) {
      if (fate !== "reported") continue;
      for (const { label, value } of issues) {
        if (object.issue.test(label))
          await { owner: customer, other, admin }[object.by ?? "owner"].unsafe(value);
      }
      expect([object.kind, await stateOf(admin, fill(object.state))]).toEqual([
        object.kind,
        before.get(object),
      ]);
    }
  }
  return found;
}

const DOC = new URL("../../../docs/customer-objects.md", import.meta.url);
const [BEGIN, END] = ["<!-- table: objects -->", "<!-- /table: objects -->"];

/** `OBJECTS=all` makes every change on every version, and as every role. */
const fewer = CHANGES.filter(
  ({ name }) => process.env.OBJECTS === "all" || name === "its field retyped" || name === "its field deleted",
);

describe.each([
  { role: "the owner of the database", isSuperuser: false },
  { role: "a superuser", isSuperuser: true },
])("the service's role is $role", ({ isSuperuser }) => {
  const fates = new Map<string, Map<CustomerObject, [Found, string]>>();

  test.each(isSuperuser ? fewer : CHANGES)("nothing is lost silently: $name", async (change) => {
    const found = await fateOf(change, isSuperuser);
    fates.set(change.name, found);
    const lost = [...found].filter(([, [fate]]) => fate === "LOST");
    expect(lost.map(([{ kind }, [, detail]]) => [kind, detail])).toEqual([]);
  });

  afterAll(() => {
    if (isSuperuser || fates.size < CHANGES.length) return;
    const rows = [
      `| on a table | ${CHANGES.map(({ name }) => name).join(" | ")} |`,
      `|---|${CHANGES.map(() => "---").join("|")}|`,
      ...OBJECTS.map(
        (object) =>
          `| ${object.kind} | ${CHANGES.map(({ name }) => MARK[fates.get(name)!.get(object)![0]]).join(" | ")} |`,
      ),
    ].join("\n");
    console.log(rows);
    const text = readFileSync(DOC, "utf8");
    const [from, to] = [text.indexOf(BEGIN) + BEGIN.length, text.indexOf(END)];
    if (process.env.UPDATE_DOCS) writeFileSync(DOC, `${text.slice(0, from)}\n${rows}\n${text.slice(to)}`);
    else expect(text.slice(from, to).trim(), "UPDATE_DOCS=1 writes docs/customer-objects.md").toBe(rows);
  });
});

/** The marks in the page, by kind and change. */
function marksOf(page: string): Map<string, Map<string, string>> {
  const [head, , ...rows] = page
    .slice(page.indexOf(BEGIN) + BEGIN.length, page.indexOf(END))
    .trim()
    .split("\n")
    .map((line) => line.split("|").map((cell) => cell.trim()));
  return new Map(
    rows.map((cells) => [cells[1]!, new Map(cells.slice(2, -1).map((mark, nth) => [head![nth + 2]!, mark]))]),
  );
}

describe.each(POSTGRES_VERSIONS.filter((version) => version !== "18"))("on Postgres %s", (version) => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await postgresServer({ version });
  }, 120_000);
  afterAll(() => server[Symbol.asyncDispose]());

  test.each(fewer)("customers' objects fare as the page says: $name", async (change) => {
    const marks = marksOf(readFileSync(DOC, "utf8"));
    const found = await fateOf(change, false, server.url);
    const others = [...found].flatMap(([{ kind }, [fate, detail]]) => {
      const mark = marks.get(kind)?.get(change.name);
      return mark === MARK[fate] ? [] : [[kind, mark, MARK[fate], detail]];
    });
    expect(others).toEqual([]);
  });
});
