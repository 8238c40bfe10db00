/** A customer's own database. The service gets the role that owns it, which is not a superuser. */
import type postgres from "postgres";
import { inject, onTestFinished } from "vitest";
import { claimEpoch, databaseUrl, installReplica, openReplica } from "../../core/replica";
import type { FieldType } from "../../core/source";
import { asAdmin } from "./admin";
import { readerOf } from "./replica";
import { type Shop, shopIn } from "./shop";

export interface OwnDatabase extends Shop {
  /** The customer as the owner of the database: the same role as the service's. */
  customer: postgres.Sql;
  /** Another role of the customer, which may create schemas. */
  other: postgres.Sql;
  otherRole: string;
  ownerRole: string;
  /** A superuser on that server. */
  admin: postgres.Sql;
}

/**
 * Creates `orders` in the schema `airtable` of such a database. Ends with the test.
 *
 * @param server a superuser's URL; the test server's unless given
 */
export async function ownDatabase(
  fields: Record<string, FieldType>,
  server: string = inject("postgresUrl"),
): Promise<OwnDatabase> {
  const tag = crypto.randomUUID().slice(0, 8);
  const [ownerRole, otherRole, database] = [
    `bt_owner_${tag}`,
    `bt_other_${tag}`,
    `bt_${inject("runId")}_own_${tag}`,
  ];
  await asAdmin(async (sql) => {
    for (const role of [ownerRole, otherRole]) await sql.unsafe(`create role ${role} login password 'x'`);
    await sql.unsafe(`create database ${database} owner ${ownerRole}`);
    await sql.unsafe(`grant connect, create on database ${database} to ${otherRole}`);
  }, server);
  const urlOf = (role: string) =>
    Object.assign(new URL(databaseUrl(server, database)), { username: role, password: "x" }).href;
  const ownerUrl = urlOf(ownerRole);
  await installReplica(ownerUrl, { schema: "airtable", role: ownerRole });
  const replica = openReplica({ url: ownerUrl, schema: "airtable" });
  const [customer, other] = [readerOf(ownerUrl), readerOf(urlOf(otherRole))];
  const admin = readerOf(databaseUrl(server, database));
  const dispose = async () => {
    await Promise.all([customer, other, admin].map((sql) => sql.end({ timeout: 1 })));
    await replica.close();
    await asAdmin(async (sql) => {
      await sql.unsafe(`drop database ${database} with (force)`);
      await sql.unsafe(`drop role ${ownerRole}; drop role ${otherRole}`);
    }, server);
  };
  onTestFinished(dispose);
  await customer`set search_path = airtable, public`;
  const test = {
    replica,
    epoch: await claimEpoch(replica),
    readerUrl: ownerUrl,
    ownerUrl,
    role: ownerRole,
    [Symbol.asyncDispose]: dispose,
  };
  return { ...(await shopIn(test, customer, fields)), customer, other, otherRole, ownerRole, admin };
}
