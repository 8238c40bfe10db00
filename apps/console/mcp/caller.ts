/** The agent that calls a tool, and the bases that it may name. */
import type { Agent } from "../../../core/control/agents";
import { type Base, getBase, type ManagementContext } from "../../../core/control/bases";
import { BasetideError } from "../../../core/errors";

export interface AgentCaller {
  agent: Agent;
  scopes: readonly string[];
}

/** One call of a tool. */
export interface ToolCall extends AgentCaller {
  ctx: ManagementContext;
  signal: AbortSignal;
  /** For the list of calls: set by the tool as soon as it is known. */
  baseId: string | null;
  rows: number | null;
}

/**
 * Returns the base that an agent means: by its id, its name, or Airtable's id. Without a name, the only one.
 *
 * @throws BasetideError `not_found` with the bases that it may read
 */
export async function baseOf(call: ToolCall, named: string | undefined): Promise<Base> {
  const { agent, ctx } = call;
  const bases: Base[] = [];
  for (const { baseId } of agent.bases) bases.push(await getBase(ctx.db, baseId, agent.accountId));
  const asked = named?.trim().toLowerCase();
  const matches = bases.filter(({ id, name, sourceBaseId }) =>
    asked === undefined ? true : [id, name, sourceBaseId].some((one) => one.toLowerCase() === asked),
  );
  if (matches.length === 1) {
    call.baseId = matches[0]!.id;
    return matches[0]!;
  }
  const list = bases.map(({ id, name }) => `${id} (${name})`).join(", ");
  throw new BasetideError(
    "not_found",
    matches.length === 0
      ? `This agent may read no base ${named ?? ""}. It may read: ${list || "none"}`
      : `Name the base by its id: ${list}`,
  );
}
