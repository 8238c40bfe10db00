/** Writes a base's tables as SQL definitions, to create empty tables of the same shape elsewhere. */
import { quoteIdent, type TableSpec } from "../replica";

/** @returns statements that create the schema's tables, with the source's names and descriptions as comments */
export function sqlDefinitions(schema: string, tables: TableSpec[]): string {
  const place = quoteIdent(schema);
  const parts = tables.map((table) => {
    const name = `${place}.${quoteIdent(table.name)}`;
    const columns = table.columns.map(
      ({ name: column, columnType }) => `  ${quoteIdent(column)} ${columnType}`,
    );
    const comments = [
      commentOn(`table ${name}`, table.sourceName, table.description),
      ...table.columns.map(({ name: column, sourceName, description }) =>
        commentOn(`column ${name}.${quoteIdent(column)}`, sourceName, description),
      ),
    ];
    return `create table ${name} (
${["  id text primary key", "  created_time timestamp not null", ...columns].join(",\n")}
);
${comments.join("\n")}
`;
  });
  return [`create schema if not exists ${place};\n`, ...parts].join("\n");
}

function commentOn(object: string, sourceName: string, description: string | undefined): string {
  return `comment on ${object} is ${literal(description ? `${sourceName}\n\n${description}` : sourceName)};`;
}

/** Means the same whatever `standard_conforming_strings` is. */
function literal(text: string): string {
  const quoted = text.replaceAll("\0", "").replaceAll("'", "''");
  return text.includes("\\") ? `E'${quoted.replaceAll("\\", "\\\\")}'` : `'${quoted}'`;
}
