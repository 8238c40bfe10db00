/** Replicas for tests: provisioned for real on the test server, dropped by `await using`. */
import postgres from "postgres";
import { inject } from "vitest";
import {
  claimEpoch,
  databaseUrl,
  dropDatabase,
  installReplica,
  openReplica,
  provisionDatabase,
  type Replica,
} from "../../core/replica";

export interface TestReplica {
  replica: Replica;
  epoch: number;
  /** The customer's own URL. */
  readerUrl: string;
  /** The owner's. */
  ownerUrl: string;
  role: string;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * A new replica in a database of its own, with its lease claimed; the service is `adminUrl`'s role.
 *
 * @param over the way on which the service reaches it, by its URL
 */
export async function testReplica(
  adminUrl = inject("clusterUrl"),
  over: (url: string) => string = (url) => url,
): Promise<TestReplica> {
  const { database, role, password } = await provisionDatabase(adminUrl);
  const ownerUrl = databaseUrl(adminUrl, database);
  await installReplica(ownerUrl, { schema: "public", role });
  const replica = openReplica({ url: over(ownerUrl), schema: "public" });
  const readerUrl = new URL(ownerUrl);
  readerUrl.username = role;
  readerUrl.password = password;
  return {
    replica,
    epoch: await claimEpoch(replica),
    readerUrl: readerUrl.toString(),
    ownerUrl,
    role,
    async [Symbol.asyncDispose]() {
      await replica.close();
      await dropDatabase(adminUrl, database, role);
    },
  };
}

/** A connection as the customer has it. */
export function readerOf(url: string): postgres.Sql & AsyncDisposable {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  return Object.assign(sql, { [Symbol.asyncDispose]: () => sql.end({ timeout: 1 }) });
}

/** All rows of a table, in the order of their ids, as JSON has them (arrays with their NULLs). */
export async function dumpTable(sql: postgres.Sql, table: string, schema = "public"): Promise<unknown[]> {
  const rows = await sql<{ row: unknown }[]>`
    select to_json(t.*) as row from ${sql(schema)}.${sql(table)} as t order by id collate "C"`;
  return rows.map(({ row }) => row);
}
