/** Changes of the schema in Airtable after which existing queries fail, or will: after a rename, old names answer for some days. */
import { type ApiClient, type ApiSchemas, dataOf } from "../client";
import { eachAtOnce } from "./at-once";
import type { ParsedContract, Problem } from "./parse";
import { type AccountState, listedBases } from "./state";

/** The most that one request returns. */
const MOST_CHANGES = 1000;

type Change = ApiSchemas["SchemaChange"];

/** Returns when each base's last schema change was seen, by base id. One request per base. */
export async function latestChanges(
  client: ApiClient,
  { bases }: AccountState,
): Promise<Map<string, string>> {
  const found = await eachAtOnce(bases, ({ id }) => changesOf(client, id, 1));
  return new Map(found.flatMap(([{ id }, [change]]) => (change ? [[id, change.seen_at]] : [])));
}

/** Returns the breaking changes that the file does not take into account. One request per base of the file. */
export async function breakingChanges(
  client: ApiClient,
  { contract, lineOf }: ParsedContract,
  { bases }: AccountState,
): Promise<Problem[]> {
  const listed = listedBases(contract, bases);
  const found = await eachAtOnce(listed, ({ base }) => changesOf(client, base.id, MOST_CHANGES));
  return found.flatMap(([{ wanted, index, base }, changes]) => {
    const known = wanted.schema_as_of === undefined ? 0 : Date.parse(wanted.schema_as_of);
    return changes
      .filter(({ severity, seen_at }) => severity !== "additive" && Date.parse(seen_at) > known)
      .filter((change) => !isOwn(change))
      .map((change) => ({
        line: lineOf(["bases", index]),
        message: `${base.name}: ${textOf(change)}. If your queries are ready, run \`basetide pull\``,
      }));
  });
}

function changesOf(client: ApiClient, id: string, limit: number): Promise<Change[]> {
  return dataOf(
    client.GET("/api/v1/bases/{id}/schema-changes", { params: { path: { id }, query: { limit } } }),
  );
}

/** Not Airtable's: a name of the account's own, or a setting that makes texts of lists. */
function isOwn({ kind, before, after }: Change): boolean {
  if (kind.endsWith("_renamed")) return before?.source_name === after?.source_name;
  const isList = [before, after].map((one) => one?.type === "text" || one?.type === "text[]");
  return kind === "field_retyped" && !isList.includes(false) && before?.source_type === after?.source_type;
}

function textOf({ kind, table, field, before, after }: Change): string {
  const column = field ? `${table}.${field}` : table;
  if (kind.endsWith("_renamed")) return `${before?.name ?? "?"} was renamed to ${after?.name ?? column}`;
  if (kind.endsWith("_dropped")) return `${column} was dropped`;
  return `${column} changed its type from ${before?.type ?? "?"} to ${after?.type ?? "?"}`;
}
