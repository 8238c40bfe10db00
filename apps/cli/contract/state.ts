/** The account as it is: three calls, however many bases it has. */
import { type ApiClient, type ApiSchemas, dataOf } from "../client";

export interface AccountState {
  bases: ApiSchemas["Base"][];
  workspaces: ApiSchemas["Workspace"][];
  alerts: ApiSchemas["Alerts"];
}

export async function readAccountState(client: ApiClient): Promise<AccountState> {
  const [bases, workspaces, alerts] = await Promise.all([
    dataOf(client.GET("/api/v1/bases")),
    dataOf(client.GET("/api/v1/workspaces")),
    dataOf(client.GET("/api/v1/alerts")),
  ]);
  return { bases: bases.filter(({ state }) => state !== "deleting"), workspaces, alerts };
}
