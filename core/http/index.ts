/** Shared parts of all HTTP servers: gate, headers, limits, certificates. */
export { allowLongAnswer } from "./answer-time";
export { type Authority, createAuthority, openAuthority } from "./authority";
export { clientAddress, isFromThisMachine, isLoopbackUrl } from "./client-address";
export { clientNetwork, networkOf, networksAround } from "./client-network";
export { freeNow, gunzipAtOnce, gunzipBriefly, SHORTEST_GZIP } from "./gunzip";
export { compressed } from "./gzip";
export { type BodyFailure, IncomingBody } from "./incoming-body";
export { type Listener, type ListenOptions, listen, portError, reachedAt } from "./listen";
export { forwarded, pathOf } from "./own-headers";
export { RateWindow } from "./rate-window";
export { retryAfterMs } from "./retry-after";
export { SharedBodies } from "./shared-bodies";
export { type BudgetShare, SharedBudget } from "./shared-budget";
