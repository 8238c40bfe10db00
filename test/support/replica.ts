/** Replicas for tests: real databases on the test server, dropped by `await using`. */
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
import { KNOWN_TYPES } from "./known-types";

export interface TestReplica {
  replica: Replica;
  epoch: number;
  /** The customer's URL. */
  readerUrl: string;
  /** The owner's URL. */
  ownerUrl: string;
  role: string;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Creates a replica in a database of its own, and claims its lease; the service uses the role of `adminUrl`.
 *
 * @param over changes the URL by which the service reaches it
 */
export async function testReplica(
  adminUrl = inject("clusterUrl"),
  over: (url: string) => string = (url) => url,
): Promise<TestReplica> {
  const { database, role, password } = await provisionDatabase(adminUrl);
  const ownerUrl = databaseUrl(adminUrl, database);
  await installReplica(ownerUrl, { schema: "public", role, isNew: true });
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

/** Opens a connection as the customer. */
export function readerOf(url: string): postgres.Sql & AsyncDisposable {
  const sql = postgres(url, { max: 1, onnotice: () => {}, ...KNOWN_TYPES });
  return Object.assign(sql, { [Symbol.asyncDispose]: () => sql.end({ timeout: 1 }) });
}

/** All rows of a table, ordered by id, as JSON (arrays include their NULLs). */
export async function dumpTable(sql: postgres.Sql, table: string, schema = "public"): Promise<unknown[]> {
  const rows = await sql<{ row: unknown }[]>`
    select to_json(t.*) as row from ${sql(schema)}.${sql(table)} as t order by id collate "C"`;
  return rows.map(({ row }) => row);
}
