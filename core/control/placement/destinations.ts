/**
 * Destinations of new bases: a new database, a schema of a database that the account has, or a database that the
 * customer hosts.
 */
import { isProblem } from "../../check-result";
import { BasetideError, conflict } from "../../errors";
import { newId } from "../../ids";
import { installReplica, setWritable } from "../../replica";
import { recordChange } from "../audit";
import { type DatabaseCheck, requireUsable } from "./database-check";
import {
  type CreationContext,
  createHostedDatabase,
  databaseAdminUrl,
  getDatabase,
  readerRoleOf,
} from "./databases";
import { inspect } from "./external-database";
import { type ConnectionTarget, externalServer, parseConnectionTarget, withTls } from "./external-url";
import { requireRegion } from "./regions";

const DEFAULT_SCHEMA = "public";
/** Even with `_swap` appended, a schema's name stays far below Postgres' limit of 63 bytes. */
const SCHEMA_NAME = /^(?!pg_)[a-z][a-z0-9_]{0,39}$/;

export type Destination =
  /** In the account's region, unless another one is given. */
  | { kind: "new"; region?: string | undefined }
  | { kind: "existing"; database_id: string; schema: string }
  | {
      kind: "external";
      url: string;
      schema?: string | undefined;
      /** The owner has confirmed that the role may have more rights than Basetide needs. */
      accept_privileges?: boolean | undefined;
    };

type DestinationContext = CreationContext;

/**
 * Prepares the destination: afterwards the schema, its `_swap` and the sync's functions exist.
 *
 * @param checked nothing is made, and no server of a customer asked, unless this resolves
 * @throws BasetideError `destination_invalid` if it cannot be used, `not_found` for a database that the account
 *   does not have, `already_exists` for a schema of another base
 */
export async function prepareDestination(
  ctx: DestinationContext,
  accountId: string,
  destination: Destination,
  checked: Promise<unknown> = Promise.resolve(),
): Promise<{ databaseId: string; schema: string }> {
  if (destination.kind === "new") {
    const { region } = destination;
    const database = await createHostedDatabase(ctx, accountId, DEFAULT_SCHEMA, { region, checked });
    return { databaseId: database.id, schema: DEFAULT_SCHEMA };
  }
  await checked;
  const schema = checkSchemaName(destination.schema ?? DEFAULT_SCHEMA);
  if (destination.kind === "existing") {
    const database = await getDatabase(ctx.db, destination.database_id, accountId);
    await refuseTakenSchema(ctx, database.id, schema);
    const url = await databaseAdminUrl(ctx, database);
    await installReplica(url, { schema, role: readerRoleOf(database) });
    // A writable database is writable in every schema that has a base.
    if (database.isWritable && typeof url === "string") await setWritable(url, database.role, schema, true);
    return { databaseId: database.id, schema };
  }
  const accepts = destination.accept_privileges === true;
  return { databaseId: await useExternal(ctx, accountId, destination.url, schema, accepts), schema };
}

/**
 * Inspects a destination before anything is created there: for a customer's own database everything that
 * `inspect` checks, and whether its schema is free.
 *
 * @throws BasetideError `destination_invalid` for an invalid schema name or URL, `not_found`, `already_exists` for
 *   a schema of another base
 */
export async function inspectDestination(
  ctx: DestinationContext,
  accountId: string,
  destination: Destination,
): Promise<DatabaseCheck[]> {
  if (destination.kind === "new") {
    await requireRegion(ctx.db, destination.region);
    return [];
  }
  const schema = checkSchemaName(destination.schema ?? DEFAULT_SCHEMA);
  if (destination.kind === "existing") {
    const database = await getDatabase(ctx.db, destination.database_id, accountId);
    await refuseTakenSchema(ctx, database.id, schema);
    return [];
  }
  const accepts = destination.accept_privileges === true;
  const { checks } = await inspect(ctx, destination.url, schema, accepts);
  if (checks.some(isProblem)) return checks;
  const known = await knownExternal(ctx, accountId, parseConnectionTarget(destination.url));
  if (known !== null) await refuseTakenSchema(ctx, known, schema);
  return checks;
}

/** Installs into the customer's own database, and stores it only once however many bases use it. */
async function useExternal(
  ctx: DestinationContext,
  accountId: string,
  url: string,
  schema: string,
  accepts: boolean,
): Promise<string> {
  const { db, secrets } = ctx;
  const place = parseConnectionTarget(url);
  const { checks, report } = await inspect(ctx, url, schema, accepts);
  requireUsable(checks);
  const known = await knownExternal(ctx, accountId, place);
  if (known !== null) await refuseTakenSchema(ctx, known, schema);
  const server = externalServer(url, ctx.config.privateDestinations);
  await installReplica(server, { schema });
  const id = known ?? newId("database");
  const encryptedUrl = secrets.encrypt(
    report?.link.tls === undefined ? place.text : withTls(place),
    `databases.url:${id}`,
  );
  // The newest URL that works is stored: its password may have changed.
  await db.begin(async (tx) => {
    await tx`
      insert into databases (
        id, account_id, name, role_name, encrypted_url, external_host, external_port, accepts_privileges)
      values (${id}, ${accountId}, ${place.database}, ${place.user}, ${encryptedUrl}, ${place.host}, ${place.port},
        ${accepts})
      on conflict (id) do update set encrypted_url = excluded.encrypted_url,
        accepts_privileges = databases.accepts_privileges or excluded.accepts_privileges`;
    if (!accepts) return;
    const details = { name: place.database, user: place.user };
    await recordChange(tx, ctx.actor, {
      accountId,
      action: "database.privileges_accepted",
      subject: id,
      details,
    });
  });
  return id;
}

/**
 * @throws BasetideError `already_exists` if the database is another account's destination, `conflict` if the account
 *   uses it as another user
 */
async function knownExternal(
  ctx: DestinationContext,
  accountId: string,
  place: ConnectionTarget,
): Promise<string | null> {
  const [known] = await ctx.db<{ id: string; account_id: string; role: string }[]>`
    select id, account_id, role_name as role from databases
    where cluster_id is null and external_host = ${place.host} and external_port = ${place.port}
      and name = ${place.database}`;
  if (known && known.account_id !== accountId) {
    throw new BasetideError("already_exists", "Another account uses this database as its destination");
  }
  // The other bases' tables belong to that role.
  if (known && known.role !== place.user) {
    throw conflict(
      `Bases in the database ${place.database} on ${place.host} are synced as the user ${known.role}, and this URL names ${place.user}. Use a URL of ${known.role}, or another database`,
    );
  }
  return known?.id ?? null;
}

async function refuseTakenSchema(ctx: DestinationContext, databaseId: string, schema: string): Promise<void> {
  const [taken] = await ctx.db`
    select from bases where database_id = ${databaseId} and schema_name = ${schema}`;
  if (!taken) return;
  throw new BasetideError("already_exists", `Another base uses the schema ${schema} of this database`);
}

/** @throws BasetideError `destination_invalid` */
export function checkSchemaName(schema: string): string {
  if (SCHEMA_NAME.test(schema) && !schema.endsWith("_swap") && schema !== "information_schema") return schema;
  throw new BasetideError(
    "destination_invalid",
    `"${schema}" is not a valid schema name. Use up to 40 characters (a-z, 0-9, _), starting with a letter and not ending in _swap`,
  );
}
