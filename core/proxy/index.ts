/** Proxied writes: what replicas are made to show before a client has its answer, and what is repaired afterwards. */
export { idsInRequest, isRecordId, readWriteAnswer } from "./answer";
export { bodyText } from "./body-text";
export { type BaseLookup, type ConnectedBase, isKeyFresh, isSyncing } from "./connected-bases";
export type { WritesContext } from "./context";
export type { Write } from "./show-write";
export { type PreparedWrite, WriteThrough } from "./write-through";
