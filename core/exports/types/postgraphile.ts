/** PostGraphile: smart tags that declare the keys that the link views do not have, and the foreign keys of links. */
import type { TypeModel } from "./model";
import { relationsOf } from "./relations";
import { lineComments } from "./text";

interface Tags {
  primaryKey?: string;
  foreignKey?: string[];
}

export function postgraphileTags(model: TypeModel): string {
  const { schema } = model.base.database;
  const sidesOf = relationsOf(model, ({ name }) => name);
  const foreignKeys = (key: string) =>
    sidesOf(key).flatMap(({ own, table }) =>
      own ? [`(${own.column}) references ${schema}.${table} (id)`] : [],
    );
  const tagged: [string, Tags][] = [
    ...model.tables.map(({ id, name }): [string, Tags] => [name, { foreignKey: foreignKeys(id) }]),
    ...model.views.map(({ name, columns: [from] }): [string, Tags] => [
      name,
      { primaryKey: `${from},position`, foreignKey: foreignKeys(name) },
    ]),
  ];
  const classes = tagged
    .filter(([, { primaryKey, foreignKey = [] }]) => primaryKey || foreignKey.length > 0)
    .map(([name, tags]) => [`${schema}.${name}`, { tags }]);
  const note = "Generated: do not edit. Generate it again after changes of the tables in Airtable.";
  const config = { version: 1, config: { class: Object.fromEntries(classes) } };
  return `${lineComments("//", `${model.title}\n\n${note}`)}${JSON.stringify(config, null, 2)}\n`;
}
