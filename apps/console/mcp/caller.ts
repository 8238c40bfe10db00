/** The agent that calls a tool, and the bases that it may name. */
import type { Agent } from "../../../core/control/agents";
import { type Base, getBases, type ManagementContext } from "../../../core/control/bases";
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

/** The bases that an agent may read, in its own order. */
export async function basesOf({ agent, ctx }: Pick<ToolCall, "agent" | "ctx">): Promise<Base[]> {
  const ids = agent.bases.map(({ baseId }) => baseId);
  const bases = await getBases(ctx.db, agent.accountId, ids);
  return ids.flatMap((id) => bases.filter((base) => base.id === id));
}

/**
 * Returns the base that an agent means: by its id, its name, or Airtable's id. Without a name, the only one.
 *
 * @throws BasetideError `not_found` with the bases that it may read
 */
export async function baseOf(call: ToolCall, named: string | undefined): Promise<Base> {
  const bases = await basesOf(call);
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
