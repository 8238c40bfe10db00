/**
 * What an agent may read of a base, and its role's grants on the server.
 *
 * I8. The server decides: SQL of an agent is run as its role, and nothing here has to understand it.
 */
import type { Context } from "../../context";
import { notFound } from "../../errors";
import type { ServerUrl } from "../../external";
import {
  type AskedChanges,
  grantColumns,
  OWN_RELATIONS,
  type ReadChanges,
  type ReaderLimits,
  type ReaderTarget,
  readChanges,
  type SchemaContents,
  type SqlUserRole,
  type TableSpec,
} from "../../replica";
import type { FieldType } from "../../source";
import type { Base } from "../bases";
import { agentLogin, type Database, databaseAdminUrl, getDatabase, loginUrl } from "../placement";
import type { Agent, AgentBase } from "./agents";

/** Types that hold personal data, or links with which a client could send data away. */
const PRIVATE_TYPES: ReadonlySet<FieldType> = new Set([
  "attachment",
  "collaborator",
  "collaborators",
  "created_by",
  "email",
  "last_modified_by",
  "phone",
]);
/** `_sync_issues` has cells of all columns. */
const OPEN_RELATIONS = OWN_RELATIONS.filter((name) => name !== "_sync_issues");

/** Of whom a new SQL user is. */
type AgentIdentity = Pick<Agent, "id" | "name" | "createdBy">;
type ReadContext = Pick<Context, "config" | "db" | "secrets" | "log">;

/** Returns the tables of a shape with the columns that an agent may read, and the views over their links. */
export function readableIn<View extends SchemaContents["linkViews"][number]>(
  reads: Pick<AgentBase, "tables" | "hidden" | "hasPrivate">,
  shape: { tables: TableSpec[]; linkViews: View[] },
): { tables: TableSpec[]; linkViews: View[] } {
  const hidden = new Set(reads.hidden);
  const tables = shape.tables
    .filter(({ tableId }) => reads.tables === null || reads.tables.includes(tableId))
    .map((table) => ({
      ...table,
      columns: table.columns.filter(
        ({ fieldId, filesOf, type, result }) =>
          !hidden.has(filesOf ?? fieldId) &&
          (reads.hasPrivate || (filesOf === undefined && !isPrivate(type) && !isPrivate(result))),
      ),
    }));
  const fields = new Map(tables.flatMap(({ columns }) => columns.map((column) => [column.fieldId, column])));
  const linkViews = shape.linkViews.filter(({ fieldId }) => {
    const linked = fields.get(fieldId)?.linkedTableId;
    return linked !== undefined && tables.some(({ tableId }) => tableId === linked);
  });
  return { tables, linkViews };
}

function isPrivate(type: FieldType | undefined): boolean {
  return type !== undefined && PRIVATE_TYPES.has(type);
}

/**
 * Makes the agent's role in the database read exactly what the agent may read there: by its rows, and by the catalogs of
 * its bases, as they are now. Every statement of an agent runs after this, and nothing else grants: what an agent no
 * longer has is revoked by its next call, whatever has failed before.
 *
 * @returns the role's login
 * @throws BasetideError `not_found` if the agent reads no base there; `replica_unavailable`, as `agentLogin`
 */
export async function grantAgent(
  ctx: ReadContext,
  agent: AgentIdentity,
  database: Database,
): Promise<AgentReader> {
  const login = await agentLogin(ctx, database, agent);
  const admin = await databaseAdminUrl(ctx, database);
  let baseIds: string[] = [];
  await grantColumns(admin as string, login.role, async () => {
    const bases = await ctx.db<(Omit<AgentBase, "name"> & { schema: string })[]>`
      select a.base_id as "baseId", a.tables, a.hidden, a.has_private as "hasPrivate", b.schema_name as schema
      from agent_bases as a join bases as b on b.id = a.base_id
      where a.agent_id = ${agent.id} and b.database_id = ${database.id} and b.state <> 'deleting'`;
    baseIds = bases.map(({ baseId }) => baseId);
    return bases.map(({ schema, ...reads }) => ({
      schema,
      choose: (contents) => relationsOf(readableIn(reads, contents)),
    }));
  });
  return { login, admin, baseIds };
}

interface AgentReader {
  login: SqlUserRole;
  admin: ServerUrl;
  /** What it may read there. */
  baseIds: string[];
}

/**
 * Returns the base as the agent reads it now.
 *
 * @throws BasetideError `not_found` if it no longer may; as `grantAgent`
 */
export async function agentTarget(
  ctx: ReadContext,
  agent: AgentIdentity,
  base: Base,
): Promise<ReaderTarget & { role: string }> {
  const database = await getDatabase(ctx.db, base.database.id);
  const { login, admin, baseIds } = await grantAgent(ctx, agent, database);
  if (!baseIds.includes(base.id)) throw notFound("This agent may not read this base");
  const url = await loginUrl(ctx, database, login);
  return { url, admin, schema: base.database.schema, mayWrite: false, role: login.role };
}

/**
 * Reads the recorded changes of the base that the agent may read: those of columns that its role can select now.
 *
 * @param readable the asked tables, of `readableIn`
 * @throws BasetideError as `agentTarget` and `readChanges`
 */
export async function changesFor(
  ctx: ReadContext,
  agent: AgentIdentity,
  base: Base,
  { tables, ...asked }: Omit<AskedChanges, "role" | "columns"> & { tables: readonly TableSpec[] },
  limits: ReaderLimits,
): Promise<ReadChanges> {
  const columns = tables.map(({ tableId, columns: own }) => ({
    tableId,
    fieldIds: own.map(({ fieldId }) => fieldId),
  }));
  const read = async () => {
    const { admin, schema, role } = await agentTarget(ctx, agent, base);
    // As the owner, because no agent's role can read the history: the statement is ours, and nothing in it is the agent's.
    return readChanges({ url: admin, admin, schema, mayWrite: false }, limits, { ...asked, role, columns });
  };
  const changes = await read();
  // A table was made again since the role was granted its reads.
  return changes.lacking.length > 0 ? read() : changes;
}

function relationsOf({ tables, linkViews }: Pick<SchemaContents, "tables" | "linkViews">) {
  return [
    ...tables.map(({ name, columns }) => ({
      name,
      columns: ["id", "created_time", ...columns.map((column) => column.name)],
    })),
    ...linkViews.map(({ name }) => ({ name, columns: null })),
    ...OPEN_RELATIONS.map((name) => ({ name, columns: null })),
  ];
}
