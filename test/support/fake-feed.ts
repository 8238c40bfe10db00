/**
 * A change feed in memory, over a fake source: whoever edits the source by it has the feed told, unless they keep
 * silent. Payloads are those of Airtable, and are read as the adapter reads them.
 */

import { Bell } from "../../core/async";
import type { SourceRecord } from "../../core/source";
import { readBatch } from "../../core/source/airtable/payloads";
import type { Reader } from "../../core/sync/engine";
import { ask } from "../../core/sync/engine";
import type { Feed, FeedBatch, FeedFacts } from "../../core/sync/modes/live/feed-types";
import type { FakeSource, FakeTable } from "./fake-source";

/** What one table's payload says, as the source writes it. */
export interface TablePayload {
  createdRecordsById?: Record<string, unknown>;
  changedRecordsById?: Record<string, unknown>;
  destroyedRecordIds?: string[];
  createdFieldsById?: Record<string, unknown>;
  changedFieldsById?: Record<string, unknown>;
  destroyedFieldIds?: string[];
}
export type Payload = Record<string, unknown> & { changedTablesById?: Record<string, TablePayload> };

/** The hook: what outlives its readers. */
export class FakeHook {
  readonly payloads: Payload[] = [];
  /** Payloads that one read gives. */
  atOnce = 50;
  /** The durable cursor. */
  saved = 1;
  /** All that were ever saved. */
  saves: number[] = [];
  missed = 0;
  gapSince: Date | null = null;
  /** The same by performance.now(). */
  gapAt = 0;
  /** Payloads before this number are not kept. */
  keptFrom = 1;
  waiting = 0;
  reads = 0;
  /** Awaited before each read is answered; throws to fail it. */
  before: () => void | Promise<void> = () => {};
  readonly bell = new Bell();

  /** Tells; rings unless the ping is lost. */
  tell(payload: Payload, isRung = true): void {
    this.payloads.push(payload);
    if (isRung) this.bell.ring();
  }

  /** A reader that begins with the durable cursor. */
  open(): Feed {
    return new FakeFeed(this);
  }
}

class FakeFeed implements Feed {
  readonly hasPings = true;
  #hook: FakeHook;
  #next: number;

  constructor(hook: FakeHook) {
    this.#hook = hook;
    this.#next = hook.saved;
  }

  get gapSince(): Date | null {
    return this.#hook.gapSince;
  }

  wakeUp(ms: number, signal: AbortSignal): Promise<boolean> {
    return this.#hook.bell.wait(ms, signal);
  }

  async read(reader: Reader): Promise<FeedBatch> {
    const hook = this.#hook;
    const from = this.#next;
    const batch = await ask(
      reader,
      async () => {
        await hook.before();
        const first = Math.max(from, hook.keptFrom);
        const payloads = structuredClone(hook.payloads.slice(first - 1, first - 1 + hook.atOnce));
        const cursor = first + payloads.length;
        return readBatch({ payloads, cursor, mightHaveMore: cursor <= hook.payloads.length }, from);
      },
      "payloads",
    );
    hook.reads++;
    if (batch.hasGap) {
      hook.gapSince = new Date();
      hook.gapAt = performance.now();
    }
    this.#next = batch.cursor;
    return { ...batch, from };
  }

  async save(cursor: number): Promise<void> {
    this.#hook.saves.push(cursor);
    this.#hook.saved = Math.max(this.#hook.saved, cursor);
  }

  async noteDue(_at: Date, { waiting }: FeedFacts): Promise<void> {
    this.#hook.waiting = waiting;
  }

  async addMissed(count: number): Promise<void> {
    this.#hook.missed += count;
  }

  async closeGap(sweptFrom: number): Promise<void> {
    if (this.#hook.gapAt <= sweptFrom) this.#hook.gapSince = null;
  }
}

/** Edits a table of the source and has the hook tell. */
export function editor(hook: FakeHook, { source, table }: { source: FakeSource; table: FakeTable }) {
  const tableId = table.table.id;
  const tell = (payload: TablePayload) => hook.tell({ changedTablesById: { [tableId]: payload } });
  return {
    put(...records: SourceRecord[]): void {
      const created: Record<string, unknown> = {};
      const changed: Record<string, unknown> = {};
      for (const record of records) {
        const was = table.records.get(record.id);
        table.records.set(record.id, record);
        if (was) changed[record.id] = changeOf(was, record);
        else created[record.id] = { createdTime: record.createdTime, cellValuesByFieldId: {} };
      }
      tell({ createdRecordsById: created, changedRecordsById: changed });
    },
    destroy(...ids: string[]): void {
      for (const id of ids) table.records.delete(id);
      tell({ destroyedRecordIds: ids });
    },
    /** Changes the source without a word. */
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
