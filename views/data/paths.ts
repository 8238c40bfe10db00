/** The URLs of the data browser's pages. */
import type { ThumbnailSize } from "../../core/attachments";
import type { ViewState } from "../../core/data-browser";
import { writeState } from "../../core/data-browser";

export function tablePath(baseId: string, table: string, state: Partial<ViewState> = {}): string {
  return `/bases/${baseId}/data/${encodeURIComponent(table)}${writeState(state)}`;
}

export function recordPath(baseId: string, table: string, recordId: string): string {
  return `${tablePath(baseId, table)}/${encodeURIComponent(recordId)}`;
}

export function downloadPath(
  baseId: string,
  table: string,
  format: "csv" | "json",
  state: Partial<ViewState>,
): string {
  const query = new URLSearchParams(writeState(state));
  query.set("format", format);
  return `${tablePath(baseId, table)}/download?${query}`;
}

/** The form of filters alone, for a form that is not sent yet. */
export function filtersPath(baseId: string, table: string): string {
  return `${tablePath(baseId, table)}/filters`;
}

/** A picture of an attachment; undefined if one of its ids is not known. */
export function thumbnailPath(
  baseId: string,
  { tableId, id }: { tableId: string | undefined; id: string },
  fieldId: string | undefined,
  attachmentId: string | null,
  size: ThumbnailSize,
): string | undefined {
  if (tableId === undefined || fieldId === undefined || attachmentId === null) return undefined;
  const ids = [tableId, id, fieldId, attachmentId].map(encodeURIComponent).join("/");
  return `/bases/${baseId}/thumbnails/${ids}?size=${size}`;
}

/** A URL from a cell, if a browser may open it. */
export function webLink(text: string): string | undefined {
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null;
  return url?.href;
}
