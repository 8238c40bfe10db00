/** `basetide bases selection`: what of a base is copied, with the ids that `basetide.yaml` and the API take. */
import type { Command } from "commander";
import { formatTable, type OutputRow, printResult } from "../../core/terminal";
import { findBase } from "./base-ref";
import { type ApiSchemas, dataOf } from "./client";
import { type Common, command } from "./commands";
import { openClient } from "./session";

type Selected = ApiSchemas["SelectionOfBase"];

export function addSelectionCommand(bases: Command): void {
  bases.addCommand(
    command("selection", "what is copied: tables, views and fields with their ids")
      .argument("<base>", "id, Airtable id or name")
      .action(async (reference: string, { json = false }: Common) => {
        const client = openClient();
        const { id } = await findBase(client, reference);
        const params = { path: { id } };
        printResult(
          await dataOf(client.GET("/api/v1/bases/{id}/selection", { params })),
          json,
          selectionText,
        );
      }),
  );
}

function selectionText(selected: Selected): string {
  const rows = selected.available.flatMap((table) => rowsOf(selected, table));
  return `New tables: ${selected.selection.new_tables}\n\n${formatTable(rows, "The base has no tables")}`;
}

function rowsOf({ selection, unanswered }: Selected, table: Selected["available"][number]): OutputRow[] {
  const { table_id, name, views, fields } = table;
  const entry = selection.tables.find((one) => one.table_id === table_id);
  const isCopied = entry?.copied ?? selection.new_tables === "copy";
  const isOpen = unanswered.some((one) => one.table_id === table_id);
  const { view_id, omitted_fields = [], hashed_fields = [] } = entry ?? {};
  const treatment = (id: string) =>
    omitted_fields.includes(id) ? "omitted" : hashed_fields.includes(id) ? "hashed" : "copied";
  const row = (kind: string, id: string, of: string, copied: string) => ({
    ...{ table: name, kind, name: of, id, copied },
  });
  return [
    row("table", table_id, name, isCopied ? "copied" : isOpen ? "not yet decided" : "not copied"),
    ...views.map((view) =>
      row("view", view.view_id, view.name, view.view_id === view_id ? "only its records" : ""),
    ),
    ...fields.map((field) =>
      row("field", field.field_id, field.name, isCopied ? treatment(field.field_id) : "not copied"),
    ),
  ];
}
