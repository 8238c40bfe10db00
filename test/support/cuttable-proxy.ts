/** A line to a Postgres server that a test can cut: who holds it then is cut off, and nobody new gets through. */
import { faultProxy } from "./fault-proxy";

export interface CuttableProxy extends AsyncDisposable {
  /** The same database, over this line. */
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
