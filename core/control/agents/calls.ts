/** The calls of agents: when, which tool, how long it took. What was asked and answered is not stored. */
import type { Db } from "../../context";
import type { ErrorCode } from "../../errors";
import { isNotWritable } from "../../postgres";

export interface AgentCall {
  calledAt: Date;
  tool: string;
  /** Null: of all bases, or of one that was deleted. */
  baseId: string | null;
  ms: number;
  /** Of the answer; null for a tool that returns none. */
  rows: number | null;
  /** Empty if it succeeded. */
  errorCode: ErrorCode | "";
}

/** Never fails: agents can read while the control plane is read-only. */
export async function recordAgentCall(
  db: Db,
  agentId: string,
  { tool, baseId, ms, rows, errorCode }: Omit<AgentCall, "calledAt">,
): Promise<void> {
  try {
    await db`
      insert into agent_calls (agent_id, base_id, tool, ms, rows, error_code)
      select g.id, (select id from bases where id = ${baseId}), ${tool}, ${Math.round(ms)}, ${rows}, ${errorCode}
      from agents as g where g.id = ${agentId}`;
  } catch (error) {
    if (!isNotWritable(error)) throw error;
  }
}

/** The newest first. */
export function listAgentCalls(db: Db, agentId: string, limit: number): Promise<AgentCall[]> {
  return db<AgentCall[]>`
    select called_at as "calledAt", tool, base_id as "baseId", ms, rows, error_code as "errorCode"
    from agent_calls where agent_id = ${agentId} order by id desc limit ${limit}`;
}
