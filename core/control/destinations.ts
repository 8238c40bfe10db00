/**
 * Where a new base's replica goes: a database made for it, a schema of a database that the account has, or a
 * database that the customer hosts.
 */
import postgres from "postgres";
import type { Context } from "../context";
import { BasetideError } from "../errors";
import { installReplica } from "../replica";
import { createHostedDatabase, databaseAdminUrl, getDatabase, urlContext } from "./databases";
import { isConnectionError } from "./db";
import { isId, newId } from "./ids";

export const DEFAULT_SCHEMA = "public";
const CONNECT_TIMEOUT_SECONDS = 10;
const POSTGRES_PORT = 5432;
/** With `_swap` behind it a schema's name stays far under Postgres' 63 bytes. */
const SCHEMA_NAME = /^(?!pg_)[a-z][a-z0-9_]{0,39}$/;

export type Destination =
  | { kind: "new" }
  | { kind: "existing"; database_id: string; schema: string }
  | { kind: "external"; url: string; schema?: string | undefined };

type DestinationContext = Pick<Context, "db" | "secrets" | "log" | "config">;

/**
 * Makes the destination ready: afterwards the schema, its `_swap` and the sync's functions are there.
 *
 * @throws BasetideError `destination_invalid` for one that cannot be used, `not_found` for a database that the
 *   account does not have, `already_exists` for a schema that another base has
 */
export async function prepareDestination(
  ctx: DestinationContext,
  accountId: string,
  destination: Destination,
): Promise<{ databaseId: string; schema: string }> {
  if (destination.kind === "new") {
    const database = await createHostedDatabase(ctx, accountId, DEFAULT_SCHEMA);
    return { databaseId: database.id, schema: DEFAULT_SCHEMA };
  }
  const schema = checkSchemaName(destination.schema ?? DEFAULT_SCHEMA);
  if (destination.kind === "existing") {
    if (!isId("database", destination.database_id)) {
      throw new BasetideError("not_found", `There is no database ${destination.database_id}`);
    }
    const database = await getDatabase(ctx.db, destination.database_id, accountId);
    await refuseTakenSchema(ctx, database.id, schema);
    await installReplica(await databaseAdminUrl(ctx, database), { schema, role: database.role });
    return { databaseId: database.id, schema };
  }
  return { databaseId: await useExternal(ctx, accountId, destination.url, schema), schema };
}

/** Installs into the customer's own database, and remembers it once however many bases go there. */
async function useExternal(
  ctx: DestinationContext,
  accountId: string,
  url: string,
  schema: string,
): Promise<string> {
  const { db, secrets } = ctx;
  const place = parseUrl(url);
  await checkExternal(ctx, url, place, schema);
  const known = await knownExternal(ctx, accountId, place);
  if (known !== null) await refuseTakenSchema(ctx, known, schema);
  await installReplica(url, { schema, role: place.user });
  const id = known ?? newId("database");
  const sealedUrl = secrets.seal(url, urlContext(id));
  // The newest URL that works is the one to keep: its password may be the changed one.
  await db`
    insert into databases (id, account_id, name, role_name, sealed_url, external_host, external_port)
    values (${id}, ${accountId}, ${place.database}, ${place.user}, ${sealedUrl}, ${place.host}, ${place.port})
    on conflict (id) do update set sealed_url = excluded.sealed_url, role_name = excluded.role_name`;
  return id;
}

/** @throws BasetideError `already_exists` when the database is another account's destination */
async function knownExternal(
  ctx: DestinationContext,
  accountId: string,
  place: Place,
): Promise<string | null> {
  const [known] = await ctx.db<{ id: string; account_id: string }[]>`
    select id, account_id from databases
    where cluster_id is null and external_host = ${place.host} and external_port = ${place.port}
      and name = ${place.database}`;
  if (known && known.account_id !== accountId) {
    throw new BasetideError("already_exists", "This database is the destination of another account");
  }
  return known?.id ?? null;
}

/**
 * Connects and asks for what a replica needs: the right to create schemas, and a place that is not ours.
 *
 * @throws BasetideError `destination_invalid`, saying what is missing
 */
async function checkExternal(
  ctx: DestinationContext,
  url: string,
  place: Place,
  schema: string,
): Promise<void> {
  const sql = postgres(url, { max: 1, connect_timeout: CONNECT_TIMEOUT_SECONDS, onnotice: () => {} });
  try {
    const [facts] = await sql<Facts[]>`
      select current_database() as database, rolsuper or rolcreaterole as is_admin,
        has_database_privilege(current_database(), 'CREATE') as may_create,
        coalesce((select has_schema_privilege(oid, 'CREATE, USAGE') from pg_namespace where nspname = ${schema}), true)
          as may_use_schema,
        (select system_identifier::text from pg_control_system()) as server
      from pg_roles where rolname = current_user`;
    if (!facts) throw new BasetideError("destination_invalid", `The role ${place.user} is not listed there`);
    if (!facts.may_create || !facts.may_use_schema) {
      const right = facts.may_create ? `create on schema ${schema}` : `create on database ${facts.database}`;
      throw new BasetideError("destination_invalid", `The role ${place.user} lacks a right: grant ${right}`);
    }
    await refuseOurOwn(ctx, facts);
  } catch (error) {
    if (error instanceof BasetideError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    const what = isConnectionError(error) ? "cannot be reached" : "cannot be used";
    throw new BasetideError("destination_invalid", `The database at ${place.host} ${what}: ${reason}`, {
      cause: error,
    });
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** A URL into one of our own servers must not open what is ours: the control plane, other customers' databases. */
async function refuseOurOwn(ctx: DestinationContext, facts: Facts): Promise<void> {
  const [own] = await ctx.db<{ server: string; database: string; is_replica: boolean }[]>`
    select (select system_identifier::text from pg_control_system()) as server, current_database() as database,
      exists(select from databases where cluster_id is not null and name = ${facts.database}) as is_replica`;
  if (own?.is_replica) {
    throw new BasetideError(
      "destination_invalid",
      `The database ${facts.database} is hosted here: use the destination kind "existing"`,
    );
  }
  if (own?.server === facts.server && (facts.is_admin || own.database === facts.database)) {
    throw new BasetideError("destination_invalid", "That server belongs to the service itself");
  }
}

async function refuseTakenSchema(ctx: DestinationContext, databaseId: string, schema: string): Promise<void> {
  const [taken] = await ctx.db`
    select from bases where database_id = ${databaseId} and schema_name = ${schema}`;
  if (!taken) return;
  throw new BasetideError("already_exists", `Another base has the schema ${schema} of this database`);
}

function checkSchemaName(schema: string): string {
  if (SCHEMA_NAME.test(schema) && !schema.endsWith("_swap") && schema !== "information_schema") return schema;
  throw new BasetideError(
    "destination_invalid",
    `"${schema}" cannot be the schema: take up to 40 of a-z, 0-9 and _, a letter first, not ending in _swap`,
  );
}

function parseUrl(text: string): Place {
  const url = URL.parse(text);
  const database = url && decodeURIComponent(url.pathname.slice(1));
  if (!url || !/^postgres(ql)?:$/.test(url.protocol) || !url.hostname || !url.username || !database) {
    throw new BasetideError(
      "destination_invalid",
      "The destination's URL has the form postgres://user:password@host:port/database",
    );
  }
  return {
    host: url.hostname.replace(/^\[|\]$/g, "").toLowerCase(),
    port: Number(url.port) || POSTGRES_PORT,
    user: decodeURIComponent(url.username),
    database,
  };
}

interface Place {
  host: string;
  port: number;
  user: string;
  database: string;
}

interface Facts {
  database: string;
  is_admin: boolean;
  may_create: boolean;
  may_use_schema: boolean;
  server: string;
}
