/** Describes tables as `create table` statements with what each column means, at most 4 kB for each. */
import { z } from "zod";
import { cutText } from "../../../../core/cut-text";
import { readableName } from "../../../../core/exports";
import type { ColumnSpec, LinkView, TableSpec } from "../../../../core/replica";
import { byteLength, freshness, freshnessLine, MOST_DESCRIPTION, whatFits } from "../answer";
import { baseOf } from "../caller";
import { findReadable, readableOf } from "../readable";
import { baseInput, freshnessShape } from "../shapes";
import { tool } from "../tool";

const MOST_TABLES = 10;
/** Of one table, bytes. */
const MOST_BYTES = 4000;
const MOST_CHOICES = 20;

export const describeTablesTool = tool({
  name: "describe_tables",
  title: "Describe tables",
  description:
    "Columns of tables with their types, meanings, choices and how to join linked tables. Columns that you may not read are not listed, so name columns instead of `select *`.",
  input: z.object({
    base: baseInput,
    tables: z.array(z.string().max(200)).min(1).max(MOST_TABLES).describe("SQL names, or names in Airtable"),
    detail: z
      .enum(["full", "columns"])
      .optional()
      .describe("`columns`: names and types only, for tables with many columns"),
  }),
  output: z.object({
    ...freshnessShape,
    tables: z.array(z.object({ name: z.string(), columns: z.number(), is_cut: z.boolean() })),
  }),
  isReadOnly: true,
  scope: "agent:read",
  async run(call, { base: named, tables: asked, detail = "full" }) {
    const base = await baseOf(call, named);
    const facts = freshness(base);
    const { tables, linkViews } = await readableOf(call, base);
    const described = asked.map((name) =>
      definitionOf(findReadable(tables, name), tables, linkViews, detail),
    );
    call.rows = described.length;
    return {
      data: { ...facts, tables: described.map(({ data }) => data) },
      head: freshnessLine(facts),
      text: described.map(({ text }) => text).join("\n\n"),
    };
  },
});

/** One table as a statement; with less detail if it is large. */
export function definitionOf(
  table: TableSpec,
  tables: TableSpec[],
  views: LinkView[],
  detail: "full" | "columns",
): { data: { name: string; columns: number; is_cut: boolean }; text: string } {
  const head = `create table ${readableName(table.name)} ( -- ${oneLine(table.sourceName, table.description)}`;
  const own = ["  id text primary key, -- the record's id", "  created_time timestamp not null, -- UTC"];
  const lines = table.columns.map((column) => lineOf(table, column, tables, views, detail));
  const tail = ");";
  const left = MOST_BYTES - 100 - byteLength([head, ...own, tail].join("\n"));
  const kept = whatFits(lines, left, (line) => [line, "\n"]);
  const cut = lines.length - kept.length;
  const more =
    cut > 0 ? [`  -- ${cut} more columns: \`detail: "columns"\`, or list_tables with \`like\``] : [];
  return {
    data: { name: table.name, columns: lines.length + 2, is_cut: cut > 0 },
    text: [head, ...own, ...kept, ...more, tail].join("\n"),
  };
}

function lineOf(
  table: TableSpec,
  column: ColumnSpec,
  tables: TableSpec[],
  views: LinkView[],
  detail: "full" | "columns",
): string {
  const { name, columnType, sourceName, sourceType, description, choices, fieldId, linkedTableId } = column;
  const definition = `  ${readableName(name)} ${columnType},`;
  if (detail === "columns") return definition;
  const notes = [sourceName === name ? sourceType : oneLine(`${sourceName}, ${sourceType}`)];
  if (description) notes.push(cutText(oneLine(description), MOST_DESCRIPTION));
  if (choices) {
    const some = choices.slice(0, MOST_CHOICES).map((choice) => oneLine(choice));
    notes.push(`one of: ${some.join(" | ")}${choices.length > some.length ? " | …" : ""}`);
  }
  const linked = tables.find(({ tableId }) => tableId === linkedTableId);
  if (linked) {
    const [own, other] = [readableName(table.name), readableName(linked.name)];
    const join =
      columnType === "text[]"
        ? `${own}.${readableName(name)} @> array[${other}.id]`
        : `${own}.${readableName(name)} = ${other}.id`;
    const view = views.find((one) => one.fieldId === fieldId)?.name;
    notes.push(`join ${other} on ${join}${view ? `, or through ${readableName(view)}` : ""}`);
  }
  return `${definition} -- ${notes.join("; ")}`;
}

/** Texts of people, so that none ends the comment. */
function oneLine(...texts: (string | undefined)[]): string {
  return texts
    .filter((text) => text)
    .map((text) => cutText(text!.replace(/\s+/g, " "), 200))
    .join(": ");
}
