/** The account as it is: three calls, however many bases it has, and one more for each base whose selection differs. */
import { type ApiClient, type ApiSchemas, dataOf } from "../client";
import { eachAtOnce } from "./at-once";
import { baseParts } from "./base-parts";
import { baseKey, type Contract } from "./schema";

export interface AccountState {
  bases: ApiSchemas["Base"][];
  workspaces: ApiSchemas["Workspace"][];
  alerts: ApiSchemas["Alerts"];
  /** By base id: the tables in Airtable, where the file needs them. */
  available: ReadonlyMap<string, ApiSchemas["SelectableTable"][]>;
}

/** @param contract the file that the account will be compared with */
export async function readAccountState(
  client: ApiClient,
  contract: Pick<Contract, "bases"> = {},
): Promise<AccountState> {
  const [all, workspaces, alerts] = await Promise.all([
    dataOf(client.GET("/api/v1/bases")),
    dataOf(client.GET("/api/v1/workspaces")),
    dataOf(client.GET("/api/v1/alerts")),
  ]);
  const bases = all.filter(({ state }) => state !== "deleting");
  const needed = listedBases(contract, bases).flatMap(({ wanted, base }) =>
    baseParts.some(({ key, needsTables }) => wanted[key] !== undefined && needsTables?.(wanted[key], base))
      ? [base]
      : [],
  );
  const available = await eachAtOnce(needed, async ({ id }) => {
    const answer = await dataOf(client.GET("/api/v1/bases/{id}/selection", { params: { path: { id } } }));
    return answer.available;
  });
  return { bases, workspaces, alerts, available: new Map(available.map(([{ id }, tables]) => [id, tables])) };
}

/** The connected bases that the file has, with their entry and its index. */
export function listedBases({ bases: wanted = [] }: Pick<Contract, "bases">, bases: ApiSchemas["Base"][]) {
  return wanted.flatMap((one, index) => {
    const base = bases.find(({ base_id, platform }) => baseKey({ base: base_id, platform }) === baseKey(one));
    return base ? [{ wanted: one, index, base }] : [];
  });
}
