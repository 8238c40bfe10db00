/** Run by `serve.ts` in a folder with the configuration: prints what each type of the schema answers. */
import { getNamedType, isLeafType } from "graphql";
import { postgraphile } from "postgraphile";
import { grafast } from "postgraphile/grafast";
import config from "./graphile.config.mjs";

// What it logs is for the test; the answer is on stdout.
console.log = console.warn = console.error;
const instance = postgraphile(config);
const { schema, resolvedPreset } = await instance.getSchemaResult();

async function ask(source) {
  const { data, errors } = await grafast({ schema, source, resolvedPreset, requestContext: {} });
  if (errors) throw new Error(`${source}\n${errors.map((error) => error.originalError ?? error).join("\n")}`);
  return data;
}

const isList = (field) => getNamedType(field.type).name.endsWith("Connection");
const columnsOf = (type) =>
  Object.values(type.getFields()).filter((field) => isLeafType(getNamedType(field.type)));
/** All columns of a type, and of its relations. */
function selected(type, depth = 1) {
  const parts = Object.values(type.getFields()).flatMap((field) => {
    const named = getNamedType(field.type);
    if (isLeafType(named)) return [field.name];
    if (depth === 0) return [];
    if (isList(field)) return [`${field.name}(first: 2) { nodes { ${selected(nodeOf(field), 0)} } }`];
    return [`${field.name} { ${selected(named, 0)} }`];
  });
  return parts.join(" ");
}
const nodeOf = (field) => getNamedType(getNamedType(field.type).getFields().nodes.type);

const types = [];
for (const field of Object.values(schema.getQueryType().getFields()).filter(isList)) {
  const type = nodeOf(field);
  const answer = await ask(`{ ${field.name} { nodes { ${selected(type)} } } }`);
  types.push({
    ...{ type: type.name, description: type.description ?? "", rows: answer[field.name].nodes.length },
    fields: columnsOf(type).map(({ name }) => name),
  });
}
const answer = process.argv[2] ? await ask(process.argv[2]) : null;
await instance.release();
process.stdout.write(JSON.stringify({ types, answer }));
