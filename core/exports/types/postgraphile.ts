/**
 * PostGraphile: smart tags that declare the keys that the link views do not have, and the foreign keys of links.
 *
 * PostGraphile folds names: it drops underscores and makes types of the singular, so that `task` and `tasks`, or `task_2`
 * and `task2`, become one type. One conflict stops its whole schema, so whatever it would fold gets a name here.
 */
import pluralize from "pluralize";
import type { TypedRelation, TypedTable, TypedView, TypeModel } from "./model";
import { asciiAttribute, assignIdentifiers } from "./names";
import { relationsOf } from "./relations";
import { lineComments } from "./text";

interface Tags {
  name?: string;
  primaryKey?: string;
  foreignKey?: string[];
}

interface Class {
  tags?: Tags;
  attribute?: Record<string, { tags: Tags }>;
}

/** The view of `_sync_meta` under its other name, which PostGraphile folds to the same. */
const SYNC_META_VIEW = "__sync_meta__";

/** Types and root fields of PostGraphile's own, folded. */
const OWN_NAMES =
  `query mutation subscription node pageinfo cursor string int float boolean id bigint bigfloat bitstring date datetime
  time interval json uuid point internetaddress xml hstore syncmeta syncissue synchistory syncmetaview`.split(
    /\s+/,
  );
/** What types and root fields of one table are called. */
const DERIVED: ((name: string) => string)[] = [
  (name) => name,
  ...["connection", "edge", "condition", "orderby", "input", "patch", "byrowid"].map(
    (suffix) => (name: string) => name + suffix,
  ),
  (name) => `all${pluralize(name)}`,
];
/** A column is a field next to the node's id, and a value of the type of orders. `rowid` is what `id` becomes. */
const OWN_FIELDS = ["id", "rowid", "primarykey"];

export function postgraphileTags(model: TypeModel): string {
  const { schema } = model.base.database;
  const { relations } = model;
  const names = assignIdentifiers(
    relations.map(({ name }) => ({ id: name, name })),
    {
      ...{ spell, fallback: "table", occupied: OWN_NAMES },
      keysOf: (name) => DERIVED.map((derived) => derived(folded(pluralize.singular(name)))),
    },
  );
  const sidesOf = relationsOf(model, ({ name }) => name);
  const classOf = (one: TypedTable | TypedView): Class => {
    const name = names.get(one.name)!;
    const foreignKey = sidesOf(one.key).flatMap(({ own, table }) =>
      own ? [`(${own.column}) references ${schema}.${table} (id)`] : [],
    );
    const tags = {
      ...(name === one.name ? {} : { name }),
      ...("id" in one ? {} : { primaryKey: `${one.columns[0]},position` }),
      ...(foreignKey.length === 0 ? {} : { foreignKey }),
    };
    const attribute = attributesOf(one);
    return {
      ...(Object.keys(tags).length === 0 ? {} : { tags }),
      ...(Object.keys(attribute).length === 0 ? {} : { attribute }),
    };
  };
  const classes = relations
    .map((one): [string, Class] => [`${schema}.${one.name}`, classOf(one)])
    .filter(([, one]) => Object.keys(one).length > 0);
  const view: [string, Class] = [`${schema}.${SYNC_META_VIEW}`, { tags: { name: "sync_meta_view" } }];
  const note = "Generated: do not edit. Generate it again after changes of the tables in Airtable.";
  const config = { version: 1, config: { class: Object.fromEntries([...classes, view]) } };
  return `${lineComments("//", `${model.title}\n\n${note}`)}${JSON.stringify(config, null, 2)}\n`;
}

/** Names of the columns that cannot have their own. */
function attributesOf({ row }: TypedRelation): Record<string, { tags: Tags }> {
  const columns = row.map(({ name }) => name).filter((name) => name !== "id");
  const names = assignIdentifiers(
    columns.map((name) => ({ id: name, name })),
    {
      ...{ spell, fallback: "field", occupied: OWN_FIELDS },
      keysOf: (name) => [folded(name)],
    },
  );
  const renamed = [...names].filter(([column, name]) => column !== name);
  return Object.fromEntries(renamed.map(([column, name]) => [column, { tags: { name } }]));
}

/** Names of GraphQL have ASCII letters only. */
function spell(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : asciiAttribute(name);
}

/** As PostGraphile sees a name: in camel case, whose underscores at the start and the end stay. */
function folded(name: string): string {
  const [, start, middle, end] = /^(_*)(.*?)(_*)$/s.exec(name)!;
  return `${start!.slice(0, 1)}${middle!.replaceAll("_", "").toLowerCase()}${end}`;
}
