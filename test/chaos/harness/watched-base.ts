/**
 * A base that is written to and read all the time.
 *
 * I1, I2. What SQL shows of a record never goes back in the source's order, nor behind what a client was told.
 * I6. A row's formula is that of its own token, and a new column is filled for every row at once.
 */
import postgres from "postgres";
import type { SourceDump } from "../../support/compare-to-source";
import { Audit } from "./audit";
import { Contract, type Manage } from "./contract";
import type { Cluster } from "./service";
import type { ChaosSource, TokenHistory } from "./source";

/** How often SQL is read, ms. */
const CHECK_EVERY_MS = 80;
/** More than these add no information. */
const MAX_VIOLATIONS = 10;
/** Columns of formulas over the token: their fields may be renamed, but the number stays. */
const SHOUT = /^(?:shout|yell)_(\d+)/;

export type Mode = "sweeps" | "turbo" | "rapid" | "live";

export interface BaseFacts {
  id: string;
  sourceBaseId: string;
  mode: Mode;
  /** As the customer, and as the owner. Bypasses the fault proxies. */
  readerUrl: string;
  ownerUrl: string;
}

/** What SQL must show of a record at least. */
interface Floor {
  index: number;
  /** How it became known: SQL showed it, or a client was answered so. */
  by: "shown" | "answered";
  at: Date;
}

export class WatchedBase {
  readonly audit = new Audit();
  readonly violations: string[] = [];
  readonly owner: postgres.Sql;
  readonly reader: postgres.Sql;
  readonly history: TokenHistory;
  readonly contract: Contract;
  /** Records of the busy table that may be written to. */
  ids: string[] = [];
  sideTableId = "";
  sideIds: string[] = [];
  /** The pulse's record; when each beat was written, by its number, on performance.now(). */
  pulseId = "";
  readonly beats = new Map<number, number>();
  lastBeat = 0;
  /** The greatest beat that SQL has shown, and when each was first shown or exceeded. */
  shownBeat = 0;
  readonly shownAt: { beat: number; at: number }[] = [];
  /** The lowest state that SQL may show of a record. */
  #floors = new Map<string, Floor>();
  /** How often the server has lost committed data. */
  #losses = 0;
  kindFieldId = "";
  #isKindNumber = false;
  #shouts = 0;
  readonly #deletedShouts = new Set<string>();
  readonly #said = new Set<string>();
  #isOver = false;
  #watching: Promise<void> = Promise.resolve();

  constructor(
    readonly facts: BaseFacts,
    /** The location of its replica. */
    readonly cluster: Cluster,
    readonly source: ChaosSource,
    names: { arePinned: boolean; manage: Manage },
  ) {
    this.contract = new Contract(this, names.arePinned, names.manage);
    const options = {
      max: 2,
      onnotice: () => {},
      backoff: () => 0.1,
      connect_timeout: 3,
      fetch_types: false,
    };
    this.owner = postgres(facts.ownerUrl, options);
    this.reader = postgres(facts.readerUrl, options);
    this.history = source.history(facts.sourceBaseId);
  }

  /** Reads the base's state at the source, before anything writes to it. */
  learn(dump: SourceDump): void {
    const [busy, pulse] = ["Busy", "Pulse"].map((name) => dump.tables.find((table) => table.name === name)!);
    const token = busy!.fields.find((field) => field.name === "Token")!;
    this.kindFieldId = busy!.fields.find((field) => field.name === "Kind")!.id;
    for (const record of busy!.records) this.history.note(record.id, String(record.fields[token.id]));
    this.ids = busy!.records.map((record) => record.id);
    this.pulseId = pulse!.records[0]!.id;
    const side = dump.tables.find((table) => table.name === "Side")!;
    this.sideTableId = side.id;
    this.sideIds = side.records.map((record) => record.id);
  }

  /** Gives the busy table a formula field over each record's token. */
  shout(): Promise<unknown> {
    return this.source.call("POST", `bases/${this.facts.sourceBaseId}/tables/Busy/fields`, {
      name: `Shout ${++this.#shouts}`,
      type: "formula",
      options: { formula: "UPPER({Token})" },
    });
  }

  /** Changes the type of the busy table's unused field, so that the whole table is read and its column exchanged. */
  retype(): Promise<unknown> {
    this.#isKindNumber = !this.#isKindNumber;
    return this.source.call(
      "PATCH",
      `bases/${this.facts.sourceBaseId}/tables/Busy/fields/${this.kindFieldId}`,
      this.#isKindNumber ? { type: "number", options: { precision: 0 } } : { type: "singleLineText" },
    );
  }

  /** The field will be deleted: SQL may show its column after the source has deleted it. */
  forgetShout(name: string): void {
    this.#deletedShouts.add(/\d+/.exec(name)?.[0] ?? "");
  }

  watch(): void {
    this.#watching = this.#watch();
    this.contract.watch();
  }

  /** A client was told this state of the record: SQL must not show an older one from now on. */
  async promise(id: string, token: string | undefined): Promise<void> {
    const losses = this.#losses;
    const index = await this.history.arrivedAt(id, token);
    if (losses === this.#losses) this.#raise(id, index, "answered");
  }

  /**
   * What SQL must show now has to survive any failure of the server.
   *
   * @returns a function to call when the server is down and has lost later data: SQL must show only what it had at the
   *   mark
   */
  mark(): () => void {
    const floors = new Map(this.#floors);
    const rewindAudit = this.audit.mark();
    const rewindContract = this.contract.mark();
    return () => {
      this.#floors = floors;
      this.#losses++;
      rewindAudit();
      rewindContract();
    };
  }

  /** @returns when SQL first showed a beat written after `since` (performance.now()); undefined: not yet */
  syncedAfter(since: number): number | undefined {
    return this.shownAt.find(({ beat, at }) => at > since && (this.beats.get(beat) ?? 0) > since)?.at;
  }

  async close(): Promise<void> {
    this.#isOver = true;
    await this.#watching;
    await this.contract.close();
    await Promise.all([this.owner.end({ timeout: 1 }), this.reader.end({ timeout: 1 })]);
  }

  async #watch(): Promise<void> {
    while (!this.#isOver) {
      try {
        await this.#look();
      } catch {
        // The server is down, or the table is being changed.
      }
      await Bun.sleep(CHECK_EVERY_MS);
    }
  }

  async #look(): Promise<void> {
    const floors = new Map(this.#floors);
    const losses = this.#losses;
    const [rows, [pulse]] = await Promise.all([
      this.reader<Record<string, string | null>[]>`select * from busy`.simple(),
      this.reader<{ beat: string }[]>`select beat from pulse`.simple(),
    ]);
    const beat = Number(pulse?.beat ?? 0);
    if (beat > this.shownBeat) {
      this.shownBeat = beat;
      this.shownAt.push({ beat, at: performance.now() });
    }
    const shown = new Map(rows.map((row) => [row.id!, row]));
    for (const id of new Set([...floors.keys(), ...shown.keys()])) {
      const row = shown.get(id);
      const token = row?.token ?? undefined;
      const index = row ? await this.history.arrivedAt(id, token) : this.history.indexOf(id, undefined);
      if (losses !== this.#losses) return;
      const floor = floors.get(id);
      if (row && index < 0) this.#found(`I2: ${id} shows "${token}", which the source never had`);
      else if (floor && index < floor.index)
        this.#found(
          `I1: ${id} shows state ${index} after state ${floor.index} was ${floor.by}`,
          `at ${floor.at.toISOString()}; ${await this.#lastWrite(id)}`,
        );
      this.#raise(id, index, "shown");
      for (const [column, cell] of Object.entries(row ?? {})) {
        const [, number] = SHOUT.exec(column) ?? [];
        if (number && !this.#deletedShouts.has(number) && cell !== token?.toUpperCase())
          this.#found(`I6: ${column} of ${id} is "${cell}" next to "${token}"`);
      }
    }
  }

  /** Records each violation once, though it may be seen many times. */
  #found(violation: string, details = ""): void {
    const said = `${violation} (${this.facts.mode})`;
    if (this.#said.has(said) || this.violations.length >= MAX_VIOLATIONS) return;
    this.#said.add(said);
    this.violations.push(`${said}, seen ${new Date().toISOString()} ${details}`);
  }

  /** What the recent-writes log says of a record, for an investigation. */
  async #lastWrite(id: string): Promise<string> {
    const rows = await this.owner`
      select j.applied_version, j.read_version, j.gone, j.written, t.columns_since, s.epoch, s.recent_writes_floor
      from public_swap._state as s left join public_swap._recent_writes as j on j.record_id = ${id}
        left join public_swap._tables as t on t.table_id = j.table_id`.catch(String);
    return JSON.stringify(rows);
  }

  #raise(id: string, index: number, by: Floor["by"]): void {
    if (index > (this.#floors.get(id)?.index ?? -1)) this.#floors.set(id, { index, by, at: new Date() });
  }
}
