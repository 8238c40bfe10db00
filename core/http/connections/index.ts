/** Persistent connections to hosts that are reached over HTTP. */
export { ConnectFailure, StaleConnection, type WireRequest } from "./connection";
export { ConnectionPool, type HeldConnection, poolOf } from "./pool";
