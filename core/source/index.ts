/** The platforms that bases can be copied from. */
import type { Config } from "../config";
import { BasetideError } from "../errors";
import { createAirtable } from "./airtable";
import type { Platform } from "./types";

export { isAirtableId } from "./airtable/ids";
export { isSigned, PING_MAC_HEADER } from "./airtable/notification-signature";
export { attachmentsIn, isAttachment, mayHoldAttachments } from "./attachments";
export type {
  ChangeBatch,
  ChangedCells,
  ChangedTable,
  ChangeFeed,
  Dependents,
  Hop,
  SourceChanges,
  SourceHook,
} from "./change-feed";
export { SourceClock } from "./clock";
export { following } from "./following";
export { againIfStale, isStale } from "./stale";
export type {
  FieldType,
  Platform,
  RecordPage,
  SourceBase,
  SourceConnection,
  SourceField,
  SourceRecord,
  SourceSchema,
  SourceTable,
} from "./types";

type SourceConfig = Pick<Config, "upstreams" | "upstreamTimeoutMs">;

/** Every platform, in the order that people are shown. */
export function platforms({ upstreams, upstreamTimeoutMs }: SourceConfig): Platform[] {
  return [createAirtable({ upstreams, timeoutMs: upstreamTimeoutMs })];
}

/** @throws BasetideError `invalid_request` if there is no such platform, naming those there are */
export function platformById(all: Platform[], id: string): Platform {
  const found = all.find((platform) => platform.id === id);
  if (found) return found;
  const known = all.map((platform) => platform.id).join(", ");
  throw new BasetideError(
    "invalid_request",
    `There is no platform ${JSON.stringify(id)}; there is: ${known}`,
  );
}
