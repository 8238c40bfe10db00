/** The URLs of the data browser's pages. */
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

/** A URL from a cell, if a browser may open it. */
export function webLink(text: string): string | undefined {
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null;
  return url?.href;
}
