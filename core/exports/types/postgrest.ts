/**
 * PostgREST: a function per link column, which PostgREST takes as a relationship ("computed relationships"). Arrays of
 * links need no link view.
 *
 * The bodies are texts, so that a column that is added later is returned, too.
 */
import { quoteIdent } from "../../replica";
import type { TypedColumn, TypedTable, TypeModel } from "./model";
import { assignIdentifiers, shortened } from "./names";
import { lineComments } from "./text";

/** Bytes of a column's name that are part of a function's: the whole has at most 63. */
const MOST_BYTES = 48;
/** The comment by which the functions of an earlier run are found. */
const MARK = "Relation of Basetide";

export function postgrestFunctions(model: TypeModel): string {
  const schema = quoteIdent(model.base.database.schema);
  const relations = model.tables.flatMap((table) => {
    const columns = table.columns.filter(({ linked }) => linked);
    const stems = assignIdentifiers(
      columns.map(({ fieldId, name }) => ({ id: fieldId, name })),
      { spell: (name) => shortened(name, MOST_BYTES), fallback: "link" },
    );
    return columns.map((column) => relation(schema, table, column, stems.get(column.fieldId)!));
  });
  const note =
    "Generated: do not edit. Generate it again after changes of the tables in Airtable. It replaces its own functions only.";
  return `${lineComments("--", `${model.title}\n\n${note}`)}begin;

do $drop$
declare
  one regprocedure;
begin
  for one in
    select p.oid from pg_proc as p
    where p.pronamespace = ${literal(schema)}::regnamespace and obj_description(p.oid, 'pg_proc') = ${literal(MARK)}
  loop
    execute 'drop function ' || one;
  end loop;
end $drop$;

${relations.join("\n")}
notify pgrst, 'reload schema';
commit;
`;
}

function relation(
  schema: string,
  table: TypedTable,
  { name, isList, linked }: TypedColumn,
  stem: string,
): string {
  const to = `${schema}.${quoteIdent(linked!.name)}`;
  const own = `${schema}.${quoteIdent(`${stem}__record${isList ? "s" : ""}`)}`;
  const column = `$1.${quoteIdent(name)}`;
  const condition = isList
    ? `t.id = any (${column}) order by array_position(${column}, t.id)`
    : `t.id = ${column}`;
  const signature = `${own}(${schema}.${quoteIdent(table.name)})`;
  return `create function ${signature} returns setof ${to} rows ${isList ? 10 : 1} stable language sql as $body$
  select t.* from ${to} as t where ${condition}
$body$;
comment on function ${signature} is ${literal(MARK)};
`;
}

/** Names consist of letters, digits and underscores. */
function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
