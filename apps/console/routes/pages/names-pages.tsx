/** The page of a base's names in SQL. */
import { Elysia } from "elysia";
import { type AskedName, type Base, resolveOwnNames, updateSettings } from "../../../../core/control/bases";
import { BasetideError } from "../../../../core/errors";
import type { TableSpec } from "../../../../core/replica";
import { NamesPage, TABLE_INPUT } from "../../../../views/names/names-page";
import { onOneBase } from "../../base-page";
import { formResultOf } from "../../form-error";
import { type ConsoleContext, finish, formText } from "../../page-kit";
import { cachedTexts, currentNames } from "../../shape-cache";

export function namesPages(ctx: ConsoleContext) {
  async function find(base: Base, table: unknown) {
    const { shape, old } = await currentNames(ctx, base);
    // Columns with details of attachments are named after those of the attachments.
    const tables = shape.tables.map((table) => ({
      ...table,
      columns: table.columns.filter(({ filesOf }) => filesOf === undefined),
    }));
    const shown =
      table === undefined
        ? tables[0]
        : tables.find(({ tableId, name }) => tableId === table || name === table);
    if (table !== undefined && !shown)
      throw new BasetideError("not_found", `There is no table ${String(table)} in this database`);
    const texts = shown ? await cachedTexts(ctx, base, shown) : [];
    return { base, tables, shown, old, texts };
  }

  const page = { place: "schema", title: "Names" } as const;

  return new Elysia({ name: "names-pages", detail: { hide: true } })
    .use(onOneBase(ctx))
    .get("/bases/:id/names", async ({ base, basePage, query }) =>
      basePage(page, <NamesPage {...(await find(base, query.table))} />),
    )
    .post("/bases/:id/names", async ({ request, base, basePage, by, query, body }) => {
      const { tables, shown } = await find(base, query.table);
      if (!shown) throw new BasetideError("not_found", "There are no tables yet");
      const names = chosenNames(base, shown, body);
      const { failed } = await formResultOf(async () =>
        updateSettings(by, base, { ownNames: await resolveOwnNames(ctx, base, names) }),
      );
      if (!failed) {
        const path = `/bases/${base.id}/names?table=${encodeURIComponent(shown.tableId)}`;
        return finish(request, path, "Saved. The new names are in SQL after the next sync.");
      }
      const refused = { written: written(shown, body), error: failed.message };
      return basePage(
        { ...page, status: failed.status },
        <NamesPage {...{ base, tables, shown, refused }} />,
      );
    });
}

/** Returns the base's own names, with those of one table as they were entered. */
function chosenNames(base: Base, table: TableSpec, body: unknown): AskedName[] {
  const others = base.settings.ownNames.filter(({ tableId }) => tableId !== table.tableId);
  const inputs = [
    { input: TABLE_INPUT, field_id: null },
    ...table.columns.map(({ fieldId }) => ({ input: fieldId, field_id: fieldId })),
  ];
  return [
    ...others.map(({ tableId, fieldId, name }) => ({ table_id: tableId, field_id: fieldId, name })),
    ...inputs.flatMap(({ input, field_id }) => {
      const name = formText(body, input);
      return name === "" ? [] : [{ table_id: table.tableId, field_id, name }];
    }),
  ];
}

function written(table: TableSpec, body: unknown): Record<string, string> {
  const inputs = [TABLE_INPUT, ...table.columns.map(({ fieldId }) => fieldId)];
  return Object.fromEntries(inputs.map((input) => [input, formText(body, input)]));
}
