/**
 * Turns SQL writes of a replica on and off: the schema that customers write to, what its triggers do, and the role
 * without a login that owns it (`sql/replica/write-door.sql`, `write-views.sql`).
 *
 * I8. A writer can neither connect to other servers nor read what others write: dblink is in a schema that no other role
 * may use, and so is all that the triggers need.
 */
import { readFileSync } from "node:fs";
import type { Sql, TransactionSql } from "postgres";
import { appPath } from "../app-path";
import { BasetideError } from "../errors";
import { templateVersion } from "../postgres";
import { onReplica, SAFE_SEARCH_PATH, schemasOf } from "./connection";
import { writesOwnerOf } from "./database-roles";
import { quoteIdent } from "./naming";
import { withAdmin } from "./provision";
import type { ReplicaTarget } from "./replica";
import { serverSql } from "./server-roles";
import { WRITABLE_TYPES } from "./writable-types";
import { DBLINK_SCHEMA, writeSchemasOf } from "./write-schemas";

const door = readFileSync(appPath("sql/replica/write-door.sql"), "utf8");
/** What a superuser runs where the admin may not: it creates dblink for the admin. */
const dblinkStatements = serverSql("dblink.sql");

const DBLINK = quoteIdent(DBLINK_SCHEMA);
/** The functions of dblink that are used. */
const DBLINK_FUNCTIONS = [
  "dblink_connect(text, text)",
  "dblink_disconnect(text)",
  "dblink_get_connections()",
  "dblink_get_result(text)",
  "dblink_is_busy(text)",
  "dblink_send_query(text, text)",
];
/** Raised with every released change of what is installed. */
const REVISION = 1;
/** The largest request to the endpoint: 10,000 rows of 3 kB. */
export const MAX_WRITE_BYTES = 32 * 1024 * 1024;
/** SQLSTATEs of the rights and objects that a server may lack. */
const LACKING = new Set(["42501", "0A000", "58P01", "3F000", "42704", "42883"]);

/** How the server of a replica reaches the endpoint of SQL writes. */
export interface WriteEndpoint {
  host: string;
  port: number;
  /** The base's id. */
  user: string;
  secret: string;
  isTls: boolean;
}

/** Returns the version of what `installWrites` installs for this endpoint. */
export function writesVersion(endpoint: Omit<WriteEndpoint, "user" | "secret"> | "queued"): string {
  return templateVersion(REVISION, JSON.stringify([door, [...WRITABLE_TYPES], endpoint]));
}

/** Returns the statements that a superuser runs in the database so that `role` can turn SQL writes on. */
export function dblinkSetup(role: string): string {
  return dblinkStatements.replaceAll("{{role}}", quoteIdent(role));
}

/**
 * Installs SQL writes, or updates them, and creates the views. Idempotent.
 *
 * @param target `role` is the database's own role, or absent if the customer hosts it
 * @param endpoint `queued`: writes go to the outbox, and nothing connects to an endpoint
 * @throws BasetideError `conflict` if the server lacks something, or cannot reach the endpoint: the message has the remedy
 */
export async function installWrites(
  target: ReplicaTarget & { role?: string | undefined },
  endpoint: WriteEndpoint | "queued",
): Promise<void> {
  await withAdmin(target.url, async (sql) => {
    if (endpoint !== "queued") await ensureDblink(sql);
    await onReplica(() =>
      sql.begin(async (tx) => {
        await installDoor(tx, target, endpoint);
        // In the same transaction: where the endpoint cannot be reached, writes stay as they were.
        if (endpoint !== "queued") await checkReached(tx, target.schema, endpoint);
      }),
    );
    await applyWriteViews(sql, target.schema, true);
  });
}

/** Drops the views. What the triggers need stays, and can be used by no one. */
export async function removeWrites(target: ReplicaTarget): Promise<void> {
  await withAdmin(target.url, (sql) => applyWriteViews(sql, target.schema, false));
}

/** A role of the database that may write. */
export interface SqlWriter {
  role: string;
  mode: "at_commit" | "at_once";
  /** The source's ids of the tables. */
  tables: readonly string[];
}

/**
 * Lets the role write to these tables, and to no others. Idempotent.
 *
 * @returns the tables that have no view to write to
 */
export async function grantWrites(target: ReplicaTarget, writer: SqlWriter): Promise<string[]> {
  const { swap } = schemasOf(target.schema);
  const { write, own } = writeSchemasOf(target.schema);
  const role = quoteIdent(writer.role);
  return withAdmin(target.url, (sql) =>
    sql.begin(async (tx) => {
      await tx.unsafe(`set local search_path = ${SAFE_SEARCH_PATH}`);
      const views = await tx<{ tableId: string; name: string }[]>`
        select table_id as "tableId", name from ${tx.unsafe(swap)}._write_views where view is not null`;
      await tx.unsafe(`
        grant usage on schema ${write} to ${role};
        grant select on ${write}.log to ${role};
        ${views
          .map(({ tableId, name }) =>
            writer.tables.includes(tableId)
              ? `grant select, insert, update, delete on ${write}.${quoteIdent(name)} to ${role};`
              : `revoke all on ${write}.${quoteIdent(name)} from ${role};`,
          )
          .join("\n")}`);
      await tx`
        insert into ${tx.unsafe(own)}.writers (role, mode) values (${writer.role}, ${writer.mode})
        on conflict (role) do update set mode = excluded.mode`;
      const has = new Set(views.map(({ tableId }) => tableId));
      return writer.tables.filter((id) => !has.has(id));
    }),
  );
}

/** @throws BasetideError `conflict` */
async function ensureDblink(sql: Sql): Promise<void> {
  const [me] = await sql<{ role: string; schema: string | null }[]>`
    select current_user::text as role,
      (select n.nspname::text from pg_extension as e join pg_namespace as n on n.oid = e.extnamespace
        where e.extname = 'dblink') as schema`;
  const { role, schema } = me!;
  if (schema !== null && schema !== DBLINK_SCHEMA) {
    throw lacking(
      `dblink is in the schema ${schema}, where other roles may use it to connect to other servers with the rights of this one`,
      `create schema if not exists ${DBLINK}; alter extension dblink set schema ${DBLINK};\n${dblinkSetup(role)}`,
    );
  }
  if (schema === null) {
    await sql
      .unsafe(dblinkSetup(role))
      .catch((error: unknown) => refuse(error, "it has no extension dblink", dblinkSetup(role)));
  }
}

async function installDoor(
  tx: TransactionSql,
  { schema: shown, role }: { schema: string; role?: string | undefined },
  endpoint: WriteEndpoint | "queued",
): Promise<void> {
  const { write, own } = writeSchemasOf(shown);
  const [me] = await tx<{ name: string; has_options: boolean; database: string }[]>`
    select current_user::text as name, current_setting('server_version_num')::int >= 160000 as has_options,
      current_database() as database`;
  const owner = writesOwnerOf(role === me!.name ? undefined : role, me!.database);
  const name = quoteIdent(owner);
  const us = quoteIdent(me!.name);
  await tx.unsafe(`set local search_path = ${SAFE_SEARCH_PATH}`);
  await tx`select pg_advisory_xact_lock(hashtextextended('basetide install', 0))`;
  const [found] = await tx`select from pg_roles where rolname = ${owner}`;
  const isQueued = endpoint === "queued";
  const usingDblink: [what: string, statements: string] = [
    "it may not let that role use dblink",
    `grant usage on schema ${DBLINK} to ${name};
     ${DBLINK_FUNCTIONS.map((one) => `grant execute on function ${DBLINK}.${one} to ${name};`).join("\n")}
     revoke all on all functions in schema ${DBLINK} from public`,
  ];
  const steps: [what: string, statements: string][] = [
    [
      "it may not create a role, which owns what the triggers run",
      `${found ? "" : `create role ${name} nologin;`}
       grant ${name} to ${us} ${me!.has_options ? "with inherit true, set true" : ""}`,
    ],
    ...(isQueued ? [] : [usingDblink]),
    [
      "it may not create schemas",
      `create schema if not exists ${write};
       create schema if not exists ${own};
       revoke all on schema ${own} from public;
       grant usage, create on schema ${own}, ${write} to ${name}`,
    ],
    [
      "it may not let that role create functions",
      `do $$ declare v_language text; begin
         foreach v_language in array array['plpgsql', 'sql'] loop
           if not has_language_privilege(${literal(owner)}, v_language, 'usage') then
             execute format('grant usage on language %I to ${name}', v_language);
           end if;
         end loop;
       end $$`,
    ],
  ];
  for (const [what, statements] of steps) {
    await tx
      .savepoint((inner) => inner.unsafe(statements))
      .catch((error: unknown) =>
        refuse(error, what, isQueued ? statements : `${dblinkSetup(me!.name)}\n${statements}`),
      );
  }
  const writeName = write.slice(1, -1);
  const text = door
    .replaceAll("{{owner_text}}", literal(owner))
    .replaceAll("{{owner}}", owner)
    .replaceAll("{{admin}}", us)
    .replaceAll("{{is_queued}}", String(isQueued))
    .replaceAll("{{own}}", own)
    .replaceAll("{{write_text}}", literal(writeName))
    .replaceAll("{{write}}", write)
    .replaceAll("{{dblink}}", DBLINK)
    .replaceAll("{{most_bytes}}", String(MAX_WRITE_BYTES))
    .replaceAll("{{writable_types}}", literal(`{${[...WRITABLE_TYPES].join(",")}}`));
  await tx.unsafe(`set local role ${name}`);
  await tx.unsafe(text);
  await tx.unsafe(`delete from ${own}.endpoint`);
  if (!isQueued)
    await tx`insert into ${tx.unsafe(own)}.endpoint (connection) values (${connectionTo(endpoint)})`;
  await tx.unsafe("reset role");
}

function connectionTo({ host, port, user, secret, isTls }: WriteEndpoint): string {
  return [
    `host=${host}`,
    `port=${port}`,
    `user=${user}`,
    `password=${secret}`,
    "dbname=writes",
    `sslmode=${isTls ? "require" : "disable"}`,
    "connect_timeout=5 keepalives_idle=10 keepalives_interval=5 keepalives_count=3 tcp_user_timeout=30000",
  ].join(" ");
}

/** @throws BasetideError `conflict` */
async function checkReached(
  tx: TransactionSql,
  schema: string,
  { host, port }: WriteEndpoint,
): Promise<void> {
  const { own } = writeSchemasOf(schema);
  const [owner] = await tx<{ name: string }[]>`select quote_ident(${tx.unsafe(own)}.owner()) as name`;
  await tx.unsafe(`set local role ${owner!.name}`);
  await tx`select ${tx.unsafe(own)}.ask('{"kind": "hello"}')`.catch(
    (error: { message: string; detail?: string }) => {
      throw new BasetideError(
        "conflict",
        `The database's server cannot reach Basetide's endpoint for SQL writes at ${host}:${port} (${error.detail ?? error.message}). Let that server connect there, or set WRITE_HOST to an address that it reaches`,
        { cause: error },
      );
    },
  );
}

async function applyWriteViews(sql: Sql, schema: string, isWanted: boolean): Promise<void> {
  const { swap } = schemasOf(schema);
  const ours = sql.unsafe(swap);
  await onReplica(() =>
    sql.begin(async (tx) => {
      await tx.unsafe(`set local search_path = ${SAFE_SEARCH_PATH}`);
      // From now on there are such views, or none; apply_link_views creates or drops them.
      await tx`update ${ours}._state set sql_writes = ${isWanted} where sql_writes <> ${isWanted}`;
      await tx`select ${ours}.apply_link_views(null, null)`;
    }),
  );
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Throws `error`, or what the server lacks if that is why. */
function refuse(error: unknown, what: string, remedy: string): never {
  const { code } = error as { code?: string };
  if (code !== undefined && LACKING.has(code)) throw lacking(what, remedy, error);
  throw error;
}

function lacking(what: string, remedy: string, cause?: unknown): BasetideError {
  return new BasetideError(
    "conflict",
    `The database's server lacks something that SQL writes need: ${what}. As a superuser, run in this database: ${remedy
      .replace(/--[^\n]*/g, "")
      .replace(/\s+/g, " ")
      .trim()}`,
    { cause },
  );
}
