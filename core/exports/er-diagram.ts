/** Generates an entity-relationship diagram of a base's tables and links, in Mermaid syntax. */
import type { ColumnSpec, TableSpec } from "../replica";
import { visibleLines } from "../visible-text";

/** Column names that Mermaid accepts; any other name goes into the comment after the column. */
const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** @returns Mermaid text: a box per table with its columns, a line per column of links */
export function erDiagram(tables: TableSpec[]): string {
  const byId = new Map(tables.map((table) => [table.tableId, table]));
  const boxes = tables.map(
    (table) => `  ${entity(table)} {
    text id PK
    timestamp created_time
${table.columns.map((column, index) => `    ${attribute(column, index)}\n`).join("")}  }`,
  );
  const lines = tables.flatMap((table) =>
    table.columns.flatMap((column) => {
      const linked = column.type === "links" && byId.get(column.linkedTableId ?? "");
      return linked ? [`  ${entity(table)} ${ends(column)} ${entity(linked)} : ${quoted(column.name)}`] : [];
    }),
  );
  return `${["erDiagram", ...boxes, ...lines].join("\n")}\n`;
}

function entity({ name }: TableSpec): string {
  return quoted(name);
}

/** `text[] related FK "Related"` */
function attribute({ name, columnType, type, sourceName }: ColumnSpec, index: number): string {
  const isPlain = PLAIN_NAME.test(name);
  const parts = [columnType, isPlain ? name : `column_${index + 1}`];
  if (type === "links") parts.push("FK");
  if (!isPlain || sourceName !== name) parts.push(quoted(isPlain ? sourceName : `${name}: ${sourceName}`));
  return parts.join(" ");
}

/** Many records link to many, or, if only the first link is stored, to at most one. */
function ends({ columnType }: ColumnSpec): string {
  return columnType === "text[]" ? "}o--o{" : "}o--o|";
}

/**
 * Mermaid has no escapes within quotes, and interprets even there: quotes, marks of its own, pairs of tildes as generics,
 * `direction LR` as a statement, and `#lt;` as the character.
 */
function quoted(text: string): string {
  const plain = visibleLines(text)
    .join(" ")
    .replaceAll(/["%\\`~]/g, "'")
    .replaceAll(/direction\s+(?=TB|BT|LR|RL)/g, "direction_")
    .replaceAll(/#(?=\w+;)/g, "# ")
    .trim();
  return `"${plain}"`;
}
