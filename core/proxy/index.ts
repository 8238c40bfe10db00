/** Proxied writes: brings replicas to show a write before the client is answered, and repairs the rest afterwards. */
export { idsInRequest, isRecordId, readWriteAnswer } from "./answer";
export { bodyText } from "./body-text";
export {
  type BaseElsewhere,
  type BaseLookup,
  type ConnectedBase,
  isKeyFresh,
  isSyncing,
} from "./connected-bases";
export type { WritesContext } from "./context";
export type { Write } from "./show-write";
export { type PreparedWrite, WriteThrough } from "./write-through";
