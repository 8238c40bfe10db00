/**
 * What an agent may read of a base, and its role's grants on the server.
 *
 * I8. The server decides: SQL of an agent is run as its role, and nothing here has to understand it.
 */
import { createHash } from "node:crypto";
import type { Context } from "../../context";
import { BasetideError } from "../../errors";
import {
  type AskedChanges,
  grantColumns,
  OWN_RELATIONS,
  type ReadableRelation,
  type ReadChanges,
  type ReaderLimits,
  type ReaderTarget,
  readChanges,
  type TableSpec,
} from "../../replica";
import type { FieldType } from "../../source";
import type { Base, replicaShape } from "../bases";
import { agentLogin, databaseAdminUrl, getDatabase, knownAgentLogin, loginUrl } from "../placement";
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

type Shape = Awaited<ReturnType<typeof replicaShape>>;
type ReadContext = Pick<Context, "config" | "db" | "secrets" | "log">;

/** What there is for an agent: tables with the columns that it may read, and views over their links. */
export interface Readable {
  tables: TableSpec[];
  linkViews: Shape["linkViews"];
}

export function readableIn(
  reads: Pick<AgentBase, "tables" | "hidden" | "hasPrivate">,
  shape: Shape,
): Readable {
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
 * Grants the agent's role what it may read of the base, if that is not what it was last granted.
 *
 * @param isForced also if it is: a table was made again, and the new one lacks the grants
 * @throws BasetideError `replica_unavailable`, as `createSqlUser`
 */
export async function applyReads(
  ctx: ReadContext,
  agent: Agent,
  base: Base,
  shape: Shape,
  { isForced = false } = {},
): Promise<ReaderTarget> {
  const reads = agent.bases.find(({ baseId }) => baseId === base.id);
  if (!reads) throw new BasetideError("not_found", "This agent may not read this base");
  const database = await getDatabase(ctx.db, base.database.id);
  const login = await agentLogin(ctx, database, agent);
  const admin = await databaseAdminUrl(ctx, database);
  const { schema } = base.database;
  const relations = relationsOf(readableIn(reads, shape));
  const granted = createHash("sha256")
    .update(JSON.stringify([login.role, schema, relations]))
    .digest("hex");
  const [known] = await ctx.db<{ granted: string }[]>`
    select granted from agent_bases where agent_id = ${agent.id} and base_id = ${base.id}`;
  if (isForced || known?.granted !== granted) {
    await grantColumns(admin as string, login.role, schema, relations);
    await ctx.db`
      update agent_bases set granted = ${granted} where agent_id = ${agent.id} and base_id = ${base.id}`;
  }
  return { url: await loginUrl(ctx, database, login), admin, schema, mayWrite: false };
}

/**
 * Reads the recorded changes of the base that the agent may read: those of columns that its role can select now.
 *
 * @param readable the asked tables, of `readableIn`
 * @throws BasetideError as `applyReads` and `readChanges`
 */
export async function changesFor(
  ctx: ReadContext,
  agent: Agent,
  base: Base,
  shape: Shape,
  { tables, ...asked }: Omit<AskedChanges, "role" | "columns"> & { tables: readonly TableSpec[] },
  limits: ReaderLimits,
): Promise<ReadChanges> {
  const read = async (isForced: boolean) => {
    const { admin, schema } = await applyReads(ctx, agent, base, shape, { isForced });
    const database = await getDatabase(ctx.db, base.database.id);
    const { role } = await agentLogin(ctx, database, agent);
    const columns = tables.map(({ tableId, columns: own }) => ({
      tableId,
      fieldIds: own.map(({ fieldId }) => fieldId),
    }));
    // As the owner, because no agent's role can read the history: the statement is ours, and nothing in it is the agent's.
    return readChanges({ url: admin, admin, schema, mayWrite: false }, limits, { ...asked, role, columns });
  };
  const changes = await read(false);
  return changes.lacking.length > 0 ? read(true) : changes;
}

/** Takes from the agent's role what it may read of the base, if it has a role there. */
export async function revokeReads(ctx: ReadContext, agent: Agent, base: Base): Promise<void> {
  const database = await getDatabase(ctx.db, base.database.id);
  const login = await knownAgentLogin(ctx, database, agent.id);
  if (!login) return;
  const admin = await databaseAdminUrl(ctx, database);
  await grantColumns(admin as string, login.role, base.database.schema, []);
}

function relationsOf({ tables, linkViews }: Readable): ReadableRelation[] {
  return [
    ...tables.map(({ name, columns }) => ({
      name,
      columns: ["id", "created_time", ...columns.map((column) => column.name)],
    })),
    ...linkViews.map(({ name }) => ({ name, columns: null })),
    ...OPEN_RELATIONS.map((name) => ({ name, columns: null })),
  ];
}
