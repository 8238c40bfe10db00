/** A line to a Postgres server that a test can cut: who holds it then is cut off, and nobody new gets through. */
import { faultLine } from "./fault-proxy";

export interface CuttableLine extends AsyncDisposable {
  /** The same database, over this line. */
  url: string;
  cut(): void;
  mend(): void;
}

export async function cuttableLine(databaseUrl: string): Promise<CuttableLine> {
  const { hostname, port } = new URL(databaseUrl);
  const line = await faultLine({ host: hostname, port: Number(port || 5432) }, { isPostgres: false });
  return {
    url: line.over(databaseUrl),
    cut: line.cut,
    mend: line.mend,
    [Symbol.asyncDispose]: () => line[Symbol.asyncDispose](),
  };
}
