/** The pages and forms for what of a base is copied. */
import { Elysia } from "elysia";
import { actorOf } from "../../../../core/control/accounts";
import { type Base, getBase, readSelectable, setSelection } from "../../../../core/control/bases";
import { BasetideError } from "../../../../core/errors";
import {
  type FieldTreatment,
  isTableCopied,
  type NewTables,
  type SourceSchema,
  type SourceSelection,
  type SourceTable,
  type TableSelection,
} from "../../../../core/source";
import { BaseFrame } from "../../../../views/base/frame";
import {
  NotSelectable,
  namedLike,
  SelectedFields,
  SelectedTables,
  selectionPath,
  treatmentsFor,
} from "../../../../views/base/selection";
import { formErrorOf } from "../../form-error";
import { answer, type ConsoleContext, finish, formText, signedIn } from "../../page-kit";
import { cachedSelectable } from "../../selectable-cache";
import { EVERYTHING } from "../../selection-json";

const NEW_TABLES: readonly NewTables[] = ["copy", "ask", "ignore"];
const SAVED = "Saved. The next sync, which starts in a moment, applies it.";

export function selectionPages(ctx: ConsoleContext) {
  const { db } = ctx;

  function pageFor(request: Request, page: Pick<Parameters<typeof answer>[1], "currentUser">, base: Base) {
    return (view: preact.VNode, status?: number) =>
      answer(
        request,
        {
          ...page,
          title: `Copied data · ${base.name}`,
          active: "bases",
          base,
          ...(status !== undefined && { status }),
        },
        <BaseFrame base={base} place="settings">
          {view}
        </BaseFrame>,
      );
  }

  return new Elysia({ name: "selection-pages", detail: { hide: true } })
    .use(signedIn(ctx))
    .get("/bases/:id/selection", async ({ request, currentUser, account, params, query }) => {
      const base = await getBase(db, params.id, account.id);
      const show = pageFor(request, { currentUser }, base);
      const read: { schema?: SourceSchema } = {};
      const failed = await formErrorOf(async () => {
        read.schema = await cachedSelectable(ctx, base);
      });
      if (!read.schema) return show(<NotSelectable base={base} error={failed?.message ?? ""} />);
      return show(viewOf(base, read.schema, { search: textOf(query.q), tableId: textOf(query.table) }));
    })
    .post("/bases/:id/selection", async ({ request, currentUser, account, params, body }) => {
      const base = await getBase(db, params.id, account.id);
      const [search, tableId] = [formText(body, "q"), formText(body, "table")];
      const read: { schema?: SourceSchema } = {};
      const refused = await formErrorOf(async () => {
        const schema = await readSelectable(ctx, base);
        read.schema = schema;
        const before = base.selection ?? EVERYTHING;
        const asked =
          tableId === ""
            ? withTables(before, schema, body)
            : withFields(before, tableOf(schema, tableId), body);
        await setSelection({ ...ctx, actor: actorOf(currentUser) }, base, asked, schema);
      });
      if (!refused) return finish(request, selectionPath(base, { table: tableId, q: search }), SAVED);
      const show = pageFor(request, { currentUser }, base);
      if (!read.schema) return show(<NotSelectable base={base} error={refused.message} />, refused.status);
      return show(viewOf(base, read.schema, { search, tableId, error: refused.message }), refused.status);
    });
}

function viewOf(
  base: Base,
  schema: SourceSchema,
  asked: { search: string; tableId: string; error?: string | undefined },
) {
  const { search, tableId, error } = asked;
  const props = { base, selection: base.selection ?? EVERYTHING, tables: schema.tables, search, error };
  if (tableId === "") return <SelectedTables {...props} />;
  return <SelectedFields {...props} table={tableOf(schema, tableId)} />;
}

/** @throws BasetideError `not_found` */
function tableOf({ tables }: SourceSchema, id: string): SourceTable {
  const found = tables.find((table) => table.id === id);
  if (found) return found;
  throw new BasetideError("not_found", `There is no table ${id} in the base in Airtable`);
}

/** Names every table that is copied without being named, before new ones are treated differently. */
function withTables(before: SourceSelection, { tables }: SourceSchema, body: unknown): SourceSelection {
  const newTables = NEW_TABLES.find((one) => one === formText(body, "new_tables")) ?? before.newTables;
  const shown = new Set(formText(body, "shown").split(" "));
  const set = formText(body, "set");
  const chosen: Record<string, TableSelection> = { ...before.tables };
  for (const { id } of tables) {
    const known = chosen[id];
    if (shown.has(id)) {
      const copied = set === "" ? formText(body, `table_${id}`) === "on" : set === "copied";
      chosen[id] = { ...known, copied };
    } else if (!known && isTableCopied(before, id)) chosen[id] = { copied: true };
  }
  return { newTables, tables: chosen };
}

function withFields(before: SourceSelection, table: SourceTable, body: unknown): SourceSelection {
  const known = before.tables[table.id];
  const fields: Record<string, FieldTreatment> = { ...known?.fields };
  const set = formText(body, "set");
  const search = formText(body, "q");
  for (const field of namedLike(table.fields, search)) {
    const possible = treatmentsFor(field, table);
    const asked = set === "" ? formText(body, `field_${field.id}`) : set;
    const treatment = possible.find((one) => one === asked);
    if (treatment === "copied") delete fields[field.id];
    else if (treatment) fields[field.id] = treatment;
  }
  const viewId = formText(body, "view");
  const copied = isTableCopied(before, table.id);
  const chosen: TableSelection = { copied, ...(viewId !== "" && { viewId }), fields };
  return { ...before, tables: { ...before.tables, [table.id]: chosen } };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
