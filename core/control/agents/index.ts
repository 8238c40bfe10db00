/** Agents: AI clients that read bases as SQL users of their own, and propose changes. */
export {
  type Agent,
  type AgentBase,
  type AskedBase,
  agentOfToken,
  createAgent,
  createAgentWithoutToken,
  getAgent,
  highestLimits,
  listAgents,
  renewAgentToken,
  revokeAgent,
  updateAgent,
  usualLimits,
} from "./agents";
export { type AgentCall, listAgentCalls, recordAgentCall } from "./calls";
export {
  ACCESS_TOKEN_PREFIX,
  type AgentConnection,
  agentOfConnection,
  endConnection,
  getConnection,
  grantedScopes,
  isConnectionToken,
  listConnections,
  recordConnected,
  sqlUsersOfAgents,
} from "./connections";
export { agentTarget, changesFor, readableIn } from "./reads";
export { type AgentRule, setAgentRules } from "./rules";
