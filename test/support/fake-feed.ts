/**
 * A change feed in memory, over a fake source. An edit through this module adds a payload to the feed, unless it is
 * made silently. Payloads have Airtable's format, and are read as the adapter reads them.
 */

import { Notifier } from "../../core/async";
import type { SourceRecord } from "../../core/source";
import { readBatch } from "../../core/source/airtable/payloads";
import type { Reader } from "../../core/sync/engine";
import { metered } from "../../core/sync/engine";
import type { Feed, FeedBatch, FeedFacts } from "../../core/sync/modes/live/feed-types";
import type { FakeSource, FakeTable } from "./fake-source";

/** The payload of one table, as the source writes it. */
export interface TablePayload {
  createdRecordsById?: Record<string, unknown>;
  changedRecordsById?: Record<string, unknown>;
  destroyedRecordIds?: string[];
  createdFieldsById?: Record<string, unknown>;
  changedFieldsById?: Record<string, unknown>;
  destroyedFieldIds?: string[];
}
export type Payload = Record<string, unknown> & { changedTablesById?: Record<string, TablePayload> };

/** The webhook: the part that outlives its readers. */
export class FakeWebhook {
  readonly payloads: Payload[] = [];
  /** The most payloads that one read returns. */
  atOnce = 50;
  /** The durable cursor. */
  saved = 1;
  /** All cursors that were ever saved. */
  saves: number[] = [];
  missed = 0;
  drifts = 0;
  gapSince: Date | null = null;
  /** The same by performance.now(). */
  gapAt = 0;
  /** Payloads before this number have expired. */
  keptFrom = 1;
  waiting = 0;
  reads = 0;
  /** Awaited before each read is answered; throws to make it fail. */
  before: () => void | Promise<void> = () => {};
  readonly notifier = new Notifier();

  /** Adds a payload, and notifies unless the notification is lost. */
  tell(payload: Payload, isNotified = true): void {
    this.payloads.push(payload);
    if (isNotified) this.notifier.notify();
  }

  /** A reader that starts at the durable cursor. */
  open(): Feed {
    return new FakeFeed(this);
  }
}

class FakeFeed implements Feed {
  readonly notifications = "proven";
  readonly isFailing = false;
  readonly patienceMs = 60_000;
  readonly isSettled = true;
  #webhook: FakeWebhook;
  #next: number;

  constructor(webhook: FakeWebhook) {
    this.#webhook = webhook;
    this.#next = webhook.saved;
  }

  get gapSince(): Date | null {
    return this.#webhook.gapSince;
  }

  wakeUp(ms: number, signal: AbortSignal): Promise<boolean> {
    return this.#webhook.notifier.wait(ms, signal);
  }

  async read(reader: Reader): Promise<FeedBatch> {
    const webhook = this.#webhook;
    const from = this.#next;
    const batch = await metered(reader, "payloads").send(async () => {
      await webhook.before();
      const first = Math.max(from, webhook.keptFrom);
      const payloads = structuredClone(webhook.payloads.slice(first - 1, first - 1 + webhook.atOnce));
      const cursor = first + payloads.length;
      return readBatch({ payloads, cursor, mightHaveMore: cursor <= webhook.payloads.length }, from);
    });
    webhook.reads++;
    if (batch.hasGap) {
      webhook.gapSince = new Date();
      webhook.gapAt = performance.now();
    }
    this.#next = batch.cursor;
    return { ...batch, from };
  }

  async recordFailing(): Promise<void> {}

  async save(cursor: number): Promise<void> {
    this.#webhook.saves.push(cursor);
    this.#webhook.saved = Math.max(this.#webhook.saved, cursor);
  }

  async recordDue(_at: Date, { waiting, missed }: FeedFacts): Promise<boolean> {
    this.#webhook.waiting = waiting;
    this.#webhook.missed += missed;
    return true;
  }

  async recordDrift(): Promise<void> {
    this.#webhook.drifts++;
  }

  async closeFeedGap(sweptFrom: number): Promise<void> {
    if (this.#webhook.gapAt <= sweptFrom) this.#webhook.gapSince = null;
  }
}

/** Edits a table of the source, and adds the edit to the webhook's payloads. */
export function editor(webhook: FakeWebhook, { source, table }: { source: FakeSource; table: FakeTable }) {
  const tableId = table.table.id;
  const tell = (payload: TablePayload) => webhook.tell({ changedTablesById: { [tableId]: payload } });
  return {
    put(...records: SourceRecord[]): void {
      const created: Record<string, unknown> = {};
      const changed: Record<string, unknown> = {};
      for (const record of records) {
        const was = table.records.get(record.id);
        table.records.set(record.id, record);
        table.modifiedMs.set(record.id, Date.now());
        if (was) changed[record.id] = changeOf(was, record);
        else created[record.id] = { createdTime: record.createdTime, cellValuesByFieldId: {} };
      }
      tell({ createdRecordsById: created, changedRecordsById: changed });
    },
    destroy(...ids: string[]): void {
      for (const id of ids) table.records.delete(id);
      tell({ destroyedRecordIds: ids });
    },
    /** Changes the source without a payload. */
    silently(record: SourceRecord): void {
      table.records.set(record.id, record);
    },
    tell,
    source,
  };
}

function changeOf(was: SourceRecord, is: SourceRecord) {
  const ids = new Set([...Object.keys(was.fields), ...Object.keys(is.fields)]);
  const differing = [...ids].filter((id) => !Bun.deepEquals(was.fields[id], is.fields[id]));
  return { current: { cellValuesByFieldId: Object.fromEntries(differing.map((id) => [id, is.fields[id]])) } };
}
