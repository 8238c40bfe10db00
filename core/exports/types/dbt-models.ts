/** dbt: staging models to start with, which select the columns of the sources with unambiguous names of the ids. */
import { type ColumnSpec, MAX_NAME_BYTES, quoteIdent, snakeCase } from "../../replica";
import { dbtSources, jinjaLiteral } from "../dbt-sources";
import { toYaml } from "../yaml";
import type { TypedTable, TypeModel, TypesInput } from "./model";
import { assignIdentifiers, shortened } from "./names";

/** Returns the sources, a staging model per table, and the descriptions and tests of the models. */
export function dbtProject(input: TypesInput, { tables, base }: TypeModel): { path: string; text: string }[] {
  const source = snakeCase(base.name) || "basetide";
  const names = assignIdentifiers(tables, {
    spell: (name) => shortened(`stg_${name}`, MAX_NAME_BYTES),
    fallback: "stg",
  });
  return [
    {
      path: "sources.yml",
      text: dbtSources(input.base, input),
    },
    { path: "staging.yml", text: properties(tables, names) },
    ...tables.map((table) => ({ path: `${names.get(table.id)}.sql`, text: staging(source, table) })),
  ];
}

function staging(source: string, table: TypedTable): string {
  const id = idColumn(table);
  const columns = [
    `    id as ${quoteIdent(id)}`,
    "    created_time",
    ...table.columns.filter(({ name }) => name !== id).map(({ name }) => `    ${quoteIdent(name)}`),
  ];
  return `select
${columns.join(",\n")}
from {{ source('${source}', '${table.name}') }}
`;
}

/** `projects_id`, unless the table has such a column. */
function idColumn({ name, columns }: TypedTable): string {
  const taken = new Set(columns.map((column) => column.name));
  let wanted = shortened(`${name}_id`, MAX_NAME_BYTES);
  for (let nth = 1; taken.has(wanted); nth++) wanted = nth === 1 ? "record_id" : `record_id_${nth}`;
  return wanted;
}

function properties(tables: TypedTable[], names: ReadonlyMap<string, string>): string {
  const models = tables.map((table) => ({
    name: names.get(table.id)!,
    description: jinjaLiteral(table.doc),
    columns: [
      { name: idColumn(table), quote: true, tests: ["unique", "not_null"] },
      { name: "created_time", tests: ["not_null"] },
      ...table.columns.map(({ name, doc, spec }) => ({
        name,
        quote: true,
        description: jinjaLiteral(doc),
        data_type: typeOf(spec),
      })),
    ],
  }));
  return toYaml({ version: 2, models });
}

function typeOf({ columnType }: ColumnSpec): string {
  return columnType;
}
