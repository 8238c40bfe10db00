/** Hasura: a request to its metadata API that tracks all tables and views, and creates their relationships. */
import type { TypedRelation, TypeModel } from "./model";
import { asciiAttribute, assignIdentifiers } from "./names";
import { relationsOf, type Side } from "./relations";

/** Hasura's name of the database, unless it was given another one. */
const SOURCE = "default";

export function hasuraMetadata(model: TypeModel): string {
  const { schema } = model.base.database;
  const sidesOf = relationsOf(model, ({ name }) => name);
  const all = model.relations.map((one) => ({ one, sides: sidesOf(one.key) }));
  const names = assignIdentifiers(
    all.map(({ one }) => ({ id: one.name, name: one.name })),
    { spell: asciiAttribute, fallback: "table" },
  );
  const inSchema = (name: string) => ({ schema, name });
  /** The column of the other table that has this relation's ids. */
  const columnOf = ({ relation, table }: Side) => {
    const other = all.find(({ one }) => one.name === table)!;
    return other.sides.find((side) => side.relation === relation && side.own)!.own!.column;
  };
  const tracked = all.map(({ one }) => ({
    type: "pg_track_table",
    args: { source: SOURCE, table: inSchema(one.name), configuration: configuration(one, names) },
  }));
  const related = all.flatMap(({ one, sides }) => {
    const plain = namesIn(one, sides);
    return sides.map((side) => ({
      type: side.own ? "pg_create_object_relationship" : "pg_create_array_relationship",
      args: {
        source: SOURCE,
        table: inSchema(one.name),
        name: plain.get(`relation ${side.name}`)!,
        using: {
          manual_configuration: {
            remote_table: inSchema(side.table),
            column_mapping: side.own ? { [side.own.column]: "id" } : { id: columnOf(side) },
          },
        },
      },
    }));
  });
  // What exists is reported as an error, and the rest is created.
  return `${JSON.stringify({ type: "bulk_keep_going", args: [...tracked, ...related] }, null, 2)}\n`;
}

/** Names of GraphQL have ASCII letters only; a name that is none of them gets another one. */
function configuration(one: TypedRelation, tables: ReadonlyMap<string, string>) {
  const plain = namesIn(one, []);
  const other = one.row.map(({ name }) => name).filter((name) => plain.get(`column ${name}`) !== name);
  const columns = other.map((name) => [name, { custom_name: plain.get(`column ${name}`) }]);
  const table = tables.get(one.name)!;
  return {
    ...(table === one.name ? {} : { custom_name: table }),
    ...(columns.length === 0 ? {} : { column_config: Object.fromEntries(columns) }),
  };
}

/** Columns first, so that relations do not change their names. */
function namesIn({ row }: TypedRelation, sides: Side[]): Map<string, string> {
  const entries = [
    ...row.map(({ name }) => ({ id: `column ${name}`, name })),
    ...sides.map(({ name }) => ({ id: `relation ${name}`, name })),
  ];
  return assignIdentifiers(entries, { spell: asciiAttribute, fallback: "field" });
}
