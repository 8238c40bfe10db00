/** A proxy in front of a Postgres server that a test can cut: open connections end, and new ones fail. */
import { faultProxy } from "./fault-proxy";

export interface CuttableProxy extends AsyncDisposable {
  /** The same database, through this proxy. */
  url: string;
  cut(): void;
  restore(): void;
}

export async function cuttableProxy(databaseUrl: string): Promise<CuttableProxy> {
  const { hostname, port } = new URL(databaseUrl);
  const line = await faultProxy({ host: hostname, port: Number(port || 5432) }, { isPostgres: false });
  return {
    url: line.over(databaseUrl),
    cut: line.cut,
    restore: line.restore,
    [Symbol.asyncDispose]: () => line[Symbol.asyncDispose](),
  };
}
