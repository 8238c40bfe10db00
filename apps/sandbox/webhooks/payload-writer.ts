/**
 * Writes a change's payloads: each part where the reference puts it, with large changes split.
 *
 * P1. The payloads of one change have the same timestamp, transaction number and action.
 */
import type { SandboxTable } from "../model";

export type Json = Record<string, unknown>;

/** The beginning of every payload. */
export interface PayloadHead {
  timestamp: string;
  baseTransactionNumber: number;
  payloadFormat: "v0";
  actionMetadata: { source: string; sourceMetadata?: Json };
}

export interface Payload extends PayloadHead {
  changedTablesById?: Record<string, Json>;
  createdTablesById?: Record<string, Json>;
  destroyedTableIds?: string[];
  /** Of an error payload. */
  error?: true;
  code?: string;
}

/** Fills payloads one after the other; begins a new one when the last has its maximum of records. */
export class PayloadWriter {
  readonly payloads: Payload[] = [];
  readonly #head: PayloadHead;
  readonly #maxRecords: number;
  #records = 0;

  constructor(head: PayloadHead, maxRecords: number) {
    this.#head = head;
    this.#maxRecords = maxRecords;
  }

  createTable(table: SandboxTable): void {
    this.#part("createdTablesById")[table.id] = { metadata: metadata(table) };
  }

  destroyTable(id: string): void {
    const payload = this.#current();
    payload.destroyedTableIds ??= [];
    payload.destroyedTableIds.push(id);
  }

  /** The table's part of the current payload. */
  at(tableId: string): Json {
    const changed = this.#part("changedTablesById");
    changed[tableId] ??= {};
    return changed[tableId];
  }

  put(tableId: string, part: string, id: string, value: unknown): void {
    const created = this.payloads.at(-1)?.createdTablesById?.[tableId];
    const name = { createdFieldsById: "fieldsById", createdRecordsById: "recordsById" }[part];
    // Data that was created with its table is reported with it, in the payload that reports the table.
    put(created && name ? created : this.at(tableId), (created && name) || part, id, value);
  }

  push(tableId: string, part: string, id: string): void {
    push(this.at(tableId), part, id);
  }

  putRecord(tableId: string, viewId: string | undefined, part: string, id: string, value: unknown): void {
    this.#countRecord();
    if (viewId === undefined) this.put(tableId, part, id, value);
    else put(this.#view(tableId, viewId), part, id, value);
  }

  pushRecord(tableId: string, viewId: string | undefined, id: string): void {
    this.#countRecord();
    push(viewId === undefined ? this.at(tableId) : this.#view(tableId, viewId), "destroyedRecordIds", id);
  }

  #view(tableId: string, viewId: string): Json {
    const table = this.at(tableId);
    table.changedViewsById ??= {};
    const views = table.changedViewsById as Record<string, Json>;
    views[viewId] ??= {};
    return views[viewId];
  }

  #countRecord(): void {
    if (this.#records === this.#maxRecords) {
      this.payloads.push({ ...this.#head });
      this.#records = 0;
    }
    this.#records += 1;
  }

  #current(): Payload {
    const last = this.payloads.at(-1);
    if (last) return last;
    const first: Payload = { ...this.#head };
    this.payloads.push(first);
    return first;
  }

  #part(name: "changedTablesById" | "createdTablesById"): Record<string, Json> {
    const payload = this.#current();
    payload[name] ??= {};
    return payload[name];
  }
}

function put(into: Json, part: string, id: string, value: unknown): void {
  into[part] ??= {};
  (into[part] as Json)[id] = value;
}

function push(into: Json, part: string, id: string): void {
  into[part] ??= [];
  (into[part] as string[]).push(id);
}

/** A table's name and description as payloads show them. */
export function metadata({ name, description }: { name: string; description?: string | undefined }): Json {
  return { name, description: description ?? null };
}
