/** Kept connections to the hosts that are asked over HTTP. */
export { ConnectFailure, StaleConnection, type WireRequest } from "./connection";
export { ConnectionPool, type HeldConnection, poolOf } from "./pool";
