/** The words that cannot be names in SQL without quotes. */
import { onReplica } from "./connection";
import type { Replica } from "./replica";

/** Returns the words that this server reserves, as names of columns or of functions and types. */
export function reservedWords({ sql }: Replica): Promise<Set<string>> {
  return onReplica(async () => {
    const rows = await sql<
      { word: string }[]
    >`select word from pg_get_keywords() where catcode in ('R', 'T')`;
    return new Set(rows.map(({ word }) => word));
  });
}
