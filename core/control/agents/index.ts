/** Agents: AI clients that read bases as SQL users of their own, and propose changes. */
export {
  type Agent,
  agentOfToken,
  createAgent,
  createAgentWithoutToken,
  getAgent,
  listAgents,
  renewAgentToken,
  revokeAgent,
} from "./agents";
export { listAgentCalls, recordAgentCall } from "./calls";
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
export { applyReads, readableIn } from "./reads";
