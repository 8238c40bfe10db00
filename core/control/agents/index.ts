/** Agents: AI clients that read bases as SQL users of their own, and propose changes. */
export {
  type Agent,
  agentOfToken,
  createAgent,
  getAgent,
  listAgents,
  renewAgentToken,
  revokeAgent,
} from "./agents";
export { listAgentCalls, recordAgentCall } from "./calls";
export { applyReads, readableIn } from "./reads";
