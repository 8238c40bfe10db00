/** Lists the tables of a base in at most 8 kB, whatever its schema is. */
import { z } from "zod";
import type { Base } from "../../../../core/control/bases";
import { cutText } from "../../../../core/cut-text";
import { readableName } from "../../../../core/exports";
import type { TableSpec } from "../../../../core/replica";
import { freshness, freshnessLine, MOST_DESCRIPTION, whatFits } from "../answer";
import { baseOf } from "../caller";
import { readableOf } from "../readable";
import { baseInput, freshnessShape } from "../shapes";
import { tool } from "../tool";

/** The most of an answer, bytes: text and data together, without the frame around them. */
const MOST_BYTES = 7400;

export const listTablesTool = tool({
  name: "list_tables",
  title: "List tables",
  description:
    "The tables of a base: SQL name, name in Airtable, number of rows, linked tables, description. `like` searches names and descriptions of tables and columns. Then describe_tables has their columns.",
  input: z.object({
    base: baseInput,
    like: z.string().max(100).optional().describe("Only tables with this text in a name or description"),
  }),
  output: z.object({
    ...freshnessShape,
    tables: z.array(
      z.object({ name: z.string(), rows: z.number().nullable(), links: z.array(z.string()).optional() }),
    ),
    more: z.number().describe("Tables that match and were left out: use `like`"),
  }),
  isReadOnly: true,
  scope: "agent:read",
  async run(call, { base: named, like }) {
    const base = await baseOf(call, named);
    const facts = freshness(base);
    const answer = tableList((await readableOf(call, base)).tables, base, facts, like);
    call.rows = answer.data.tables.length;
    return answer;
  },
});

/** Lists as many tables as fit. */
export function tableList(
  tables: TableSpec[],
  base: Pick<Base, "tables">,
  facts: ReturnType<typeof freshness>,
  like?: string,
) {
  const asked = like?.toLowerCase();
  const matching = tables.filter((table) => asked === undefined || textsOf(table).includes(asked));
  const names = new Map(tables.map(({ tableId, name }) => [tableId, name]));
  const all = matching.map((table) => entryOf(table, base, names));
  const entries = whatFits(all, MOST_BYTES, ({ data, line }) => [data, [line]]);
  const more = matching.length - entries.length;
  return {
    data: { ...facts, tables: entries.map(({ data }) => data), more },
    head: `${freshnessLine(facts)}${more > 0 ? ` ${more} more tables match: use \`like\`.` : ""}`,
    text: entries.map(({ line }) => line).join("\n"),
  };
}

function textsOf({ name, sourceName, description, columns }: TableSpec): string {
  const all = [{ name, sourceName, description }, ...columns];
  return all
    .flatMap((one) => [one.name, one.sourceName, one.description ?? ""])
    .join("\n")
    .toLowerCase();
}

function entryOf(
  { name, sourceName, tableId, description, columns }: TableSpec,
  base: Pick<Base, "tables">,
  names: Map<string, string>,
) {
  const rows = base.tables.find(({ source_id }) => source_id === tableId)?.records ?? null;
  const linked = new Set(columns.flatMap(({ linkedTableId }) => names.get(linkedTableId ?? "") ?? []));
  const links = [...linked].slice(0, 5);
  const about = cutText(description?.replace(/\s+/g, " ") ?? "", MOST_DESCRIPTION);
  const parts = [
    readableName(name),
    ...(sourceName === name ? [] : [JSON.stringify(sourceName)]),
    ...(rows === null ? [] : [`${rows} rows`]),
    ...(links.length === 0 ? [] : [`links: ${links.join(", ")}`]),
    ...(about ? [about] : []),
  ];
  return { data: { name, rows, ...(links.length === 0 ? {} : { links }) }, line: parts.join("  ") };
}
