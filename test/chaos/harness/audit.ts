/**
 * Records the claims and writes of a replica inside the replica, by triggers of the test; the product's code is not
 * changed.
 *
 * I5. A process that writes under a lease must be the one that claimed the base last.
 */
import type postgres from "postgres";

/**
 * What the product's own tables show, besides the epoch: rows and their recent-writes log, the catalog, the times of
 * syncs.
 */
const WATCHED = { _recent_writes: "rows", _tables: "shape" };

const INSTALL = `
  create schema if not exists chaos;
  create table if not exists chaos.log (
    seq bigserial primary key, xact xid8 not null default pg_current_xact_id(),
    at timestamptz not null default clock_timestamp(), port integer, what text not null);
  create table if not exists chaos.disk (is_full boolean not null);
  insert into chaos.disk select false where not exists (select from chaos.disk);
  create or replace function chaos.note() returns trigger language plpgsql as $$
  begin
    if tg_argv[0] <> 'claim' and (select is_full from chaos.disk) then
      raise exception 'could not write to file "base/pgsql_tmp/pgsql_tmp1.0": No space left on device'
        using errcode = '53100';
    end if;
    insert into chaos.log (port, what) values (inet_client_port(), tg_argv[0]);
    return null;
  end $$;
  ${Object.entries({ ...WATCHED, "public._sync_meta": "meta" })
    .map(([table, what]) => {
      const name = table.includes(".") ? table : `public_swap.${table}`;
      return `create or replace trigger chaos_note after insert or update or delete on ${name}
        for each statement execute function chaos.note('${what}');`;
    })
    .join("\n")}
  create or replace trigger chaos_note after update of epoch on public_swap._state
    for each row when (old.epoch <> new.epoch) execute function chaos.note('claim');`;

export interface Noted {
  seq: number;
  /** By the database's clock. */
  at: Date;
  /** The writer's port: the proxy's, towards the server. */
  port: number;
  what: "claim" | "rows" | "shape" | "meta";
}

function describeNote({ seq, at, port }: Noted): string {
  return `${at.toISOString()} (note ${seq}, port ${port})`;
}

/** The owner of a connection. */
export interface Writer {
  /** On the machine's clock, ms. */
  since: number;
  /** Name and pid of the process, and whether it writes under leases; undefined if unknown. */
  who: { id: string; isWorker: boolean } | undefined;
}

type WhoHas = (port: number, at: Date) => Writer["who"];

export async function installAudit(owner: postgres.Sql): Promise<void> {
  await owner.unsafe(INSTALL);
}

/** Makes the replica's disk full, or frees it again. */
export async function fillDisk(owner: postgres.Sql, isFull: boolean): Promise<void> {
  await owner`update chaos.disk set is_full = ${isFull}`;
}

/** Reads one replica's records, and finds writes without a valid lease. */
export class Audit {
  readonly violations: string[] = [];
  /** The holder of the lease: the process's name and pid. Undefined if unknown. */
  holder: string | undefined;
  /** Claims on connections of an unknown process: the kernel lists only open connections. */
  unknownClaims = 0;
  #claim: Noted | undefined;
  /** Transactions before this one have been read; all of them have ended. */
  #read = "0";
  #reading: Promise<unknown> = Promise.resolve();

  /** @returns a function that rewinds to this point, for a server that has lost later transactions */
  mark(): () => void {
    const [read, claim, holder] = [this.#read, this.#claim, this.holder];
    return () => {
      this.#reading = this.#reading.then(() => {
        [this.#read, this.#claim, this.holder] = [read, claim, holder];
      });
    };
  }

  /**
   * Reads the new records.
   *
   * @param whoHas returns the owner of the connection from that port at that time
   */
  readOn(owner: postgres.Sql, whoHas: WhoHas): Promise<Noted[]> {
    // One at a time: reading older records after newer ones would mistake an old holder for the new one.
    const reading = this.#reading.then(() => this.#readOn(owner, whoHas));
    this.#reading = reading.catch(() => {});
    return reading;
  }

  async #readOn(owner: postgres.Sql, whoHas: WhoHas): Promise<Noted[]> {
    // Reads by ended transactions, not by number: a claim with a lower number may commit after writes with higher ones.
    // The records of a claim and a fenced write are in the order of their transactions, since one waits for the other.
    const [{ upto } = { upto: this.#read }] = await owner<{ upto: string }[]>`
      select pg_snapshot_xmin(pg_current_snapshot())::text as upto`;
    const notes = await owner<Noted[]>`
      select seq::float8 as seq, at, port, what from chaos.log
      where xact >= ${this.#read}::text::xid8 and xact < ${upto}::text::xid8 order by seq`;
    if (BigInt(upto) < BigInt(this.#read))
      this.violations.push(
        `the server went back from transaction ${this.#read} to ${upto} by ${new Date().toISOString()}`,
      );
    this.#read = upto;
    for (const note of notes) this.#judge(note, whoHas(note.port, note.at));
    return notes;
  }

  #judge(note: Noted, who: Writer["who"]): void {
    if (note.what === "claim") {
      this.#claim = note;
      this.holder = who?.isWorker ? who.id : undefined;
      if (!who) this.unknownClaims++;
    } else if (who?.isWorker && this.holder !== undefined && who.id !== this.holder) {
      const claim = this.#claim && `since ${describeNote(this.#claim)}`;
      this.violations.push(
        `I5: ${who.id} wrote ${note.what}, ${describeNote(note)}, while ${this.holder} held the base ${claim}`,
      );
    }
  }
}
