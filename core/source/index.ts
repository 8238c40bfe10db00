/** The platforms that bases can be copied from. */
import type { Config } from "../config";
import { createAirtable } from "./airtable";
import type { Platform } from "./types";

export { attachmentsIn, isAttachment, mayHoldAttachments } from "./attachments";
export type {
  ChangeBatch,
  ChangedCells,
  ChangedTable,
  ChangeFeed,
  Dependents,
  Hop,
  SourceChanges,
  SourceWebhook,
} from "./change-feed";
export { SourceClock } from "./clock";
export type { Call, SqlRefusal } from "./dialect";
export { following } from "./following";
export { createCellHash, isCellHash } from "./hash-cell";
export type { SourcePlan, WebhookFacts } from "./limits";
export { nextMonth, ownCallsKey, quotaKeyOf, type SourceBaseRef } from "./quota-key";
export { factsOf, limitsOfKey, platformById, platformFacts, proxied, strictest } from "./registry";
export { namedTable, type Selecting, selectedSource } from "./selected-source";
export {
  copiesEverything,
  type FieldTreatment,
  isTableCopied,
  type NewTables,
  type SourceSelection,
  selectedCells,
  selectedTable,
  type TableSelection,
  treatmentsOf,
  viewOf,
} from "./selection";
export { checkSelection, mayBeHashed } from "./selection-check";
export { isStale } from "./stale";
export { estimateSize, type TableSize } from "./table-size";
export type {
  FieldType,
  MissingPart,
  Platform,
  PlatformFacts,
  RecordPage,
  RememberedPage,
  SourceBase,
  SourceConnection,
  SourceField,
  SourceRecord,
  SourceSchema,
  SourceTable,
  UnreadableRecord,
} from "./types";

type SourceConfig = Pick<Config, "upstreams" | "upstreamTimeoutMs">;

/** Returns every platform, in display order. */
export function platforms({ upstreams, upstreamTimeoutMs }: SourceConfig): Platform[] {
  return [createAirtable({ upstreams, timeoutMs: upstreamTimeoutMs })];
}
