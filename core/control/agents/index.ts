/** Agents: AI clients that read bases as SQL users of their own, and propose changes. */
export {
  type Agent,
  type AgentBase,
  type AskedBase,
  agentOfToken,
  createAgent,
  getAgent,
  highestLimits,
  listAgents,
  renewAgentToken,
  revokeAgent,
  updateAgent,
  usualLimits,
} from "./agents";
export { type AgentCall, listAgentCalls, recordAgentCall } from "./calls";
export { applyReads, readableIn } from "./reads";
export { type AgentRule, setAgentRules } from "./rules";
