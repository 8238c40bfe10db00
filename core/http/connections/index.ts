/** Persistent connections to hosts that are reached over HTTP. */
export { AnswerTooLarge, type HttpAnswer } from "./answer-reader";
export type { StreamedAnswer } from "./answer-stream";
export { AnswerTimeout, ConnectFailure, StaleConnection, type WireRequest } from "./connection";
export { ConnectionPool, type Connections, type HeldConnection, poolOf } from "./pool";
