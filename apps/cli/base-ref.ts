/** Finds the base that a command names. */
import { type ApiClient, type ApiSchemas, dataOf } from "./client";
import { CliError } from "./failure";

export type ApiBase = ApiSchemas["Base"];

/**
 * Returns the base with this id (`bas_…`), Airtable id (`app…`) or name.
 *
 * @throws CliError `not_found`; `ambiguous` if several have the name
 */
export async function findBase(client: ApiClient, reference: string): Promise<ApiBase> {
  if (reference.startsWith("bas_")) {
    return dataOf(client.GET("/api/v1/bases/{id}", { params: { path: { id: reference } } }));
  }
  const bases = await dataOf(client.GET("/api/v1/bases"));
  const found = bases.filter((base) => base.base_id === reference || base.name === reference);
  if (found.length === 1) return found[0]!;
  if (found.length > 1) {
    const ids = found.map(({ id }) => id).join(", ");
    throw new CliError("ambiguous", `Several bases are called ${reference}. Use an id: ${ids}`);
  }
  const names = bases.map(({ id, name }) => `${name} (${id})`).join(", ");
  throw new CliError("not_found", `There is no base ${reference}. The account has: ${names || "none"}`);
}
