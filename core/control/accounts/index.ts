/** Accounts, users, sessions, API tokens and passwords. */
export {
  type Account,
  type AccountSummary,
  accountByEmail,
  checkEmail,
  createAccount,
  listAccounts,
  nameOf,
} from "./accounts";
export { COMMON_PASSWORD, isCommonPassword } from "./common-passwords";
export { actorOf, type CurrentUser, currentUserOf, switchAccount } from "./current-user";
export {
  hashPassword,
  MAX_PASSWORD_LENGTH,
  MIN_PASSWORD_LENGTH,
  PasswordPlace,
  verifyPassword,
} from "./passwords";
export {
  type AgentScope,
  agentScopes,
  can,
  denial,
  type GivenRole,
  givenRoles,
  isInScope,
  type Permission,
  type Role,
  roleLabels,
  roles,
  scopeLabels,
  scopes,
  type TokenScope,
} from "./permissions";
export { completeReset, makeResetLink, validResetLinks } from "./reset-link";
export { listSessions, revokeOtherSessions, revokeSession, type Session } from "./sessions";
export { linkedServices, unlinkService } from "./sign-in-services";
export {
  type ApiToken,
  authenticate,
  type Bearer,
  createAgentToken,
  createToken,
  hashToken,
  listTokens,
  revokeToken,
  setAgentScopes,
} from "./tokens";
export { claimCode, hasTwoFactor, isPasswordOf, removeTwoFactor } from "./two-factor";
