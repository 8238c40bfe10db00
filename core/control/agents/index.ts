/** Agents: AI clients that read bases as SQL users of their own, and propose changes. */
export {
  type Agent,
  type AgentBase,
  type AskedBase,
  agentOfToken,
  createAgent,
  getAgent,
  listAgents,
  renewAgentToken,
  revokeAgent,
} from "./agents";
export { type AgentCall, listAgentCalls, recordAgentCall } from "./calls";
export { applyReads, type Readable, readableIn } from "./reads";
