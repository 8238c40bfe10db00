/**
 * What happens to a replica, written down by the replica itself: who claimed the base, and who wrote. Triggers of the
 * test's own, none of the product's code.
 *
 * I5. Whoever writes for a lease must be the one that claimed the base last.
 */
import type postgres from "postgres";

/** What the product's own tables tell, beside the epoch: rows and their journal, the catalog, the times of syncs. */
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
  /** The writer's port: the line's, towards the server. */
  port: number;
  what: "claim" | "rows" | "shape" | "meta";
}

function describeNote({ seq, at, port }: Noted): string {
  return `${at.toISOString()} (note ${seq}, port ${port})`;
}

/** Whose connection it is. */
export interface Writer {
  /** On the machine's clock, ms. */
  since: number;
  /** Name and pid of the process, and whether it writes under leases; undefined: nobody can say. */
  who: { id: string; isWorker: boolean } | undefined;
}

type WhoHas = (port: number, at: Date) => Writer["who"];

export async function installAudit(owner: postgres.Sql): Promise<void> {
  await owner.unsafe(INSTALL);
}

/** From now on the replica's disk is full, or has room again. */
export async function fillDisk(owner: postgres.Sql, isFull: boolean): Promise<void> {
  await owner`update chaos.disk set is_full = ${isFull}`;
}

/** Follows one replica's notes, and finds who wrote without a right to. */
export class Audit {
  readonly violations: string[] = [];
  /** Whose lease it is: the process's name and pid. Undefined: somebody's whom nobody knows. */
  holder: string | undefined;
  /** Claims on connections of which nobody could say whose they are: the kernel tells only of those that last. */
  unknownClaims = 0;
  #claim: Noted | undefined;
  /** Transactions before this one have been read: all of them are over. */
  #read = "0";
  #reading: Promise<unknown> = Promise.resolve();

  /** @returns what begins again from here, where the server has lost what came later */
  mark(): () => void {
    const [read, claim, holder] = [this.#read, this.#claim, this.holder];
    return () => {
      this.#reading = this.#reading.then(() => {
        [this.#read, this.#claim, this.holder] = [read, claim, holder];
      });
    };
  }

  /**
   * Reads on.
   *
   * @param whoHas whose the connection from that port was at that time
   */
  readOn(owner: postgres.Sql, whoHas: WhoHas): Promise<Noted[]> {
    // One after the other: who reads older notes after newer ones takes an old holder for the new one.
    const reading = this.#reading.then(() => this.#readOn(owner, whoHas));
    this.#reading = reading.catch(() => {});
    return reading;
  }

  async #readOn(owner: postgres.Sql, whoHas: WhoHas): Promise<Noted[]> {
    // By transactions that are over, not by number: a claim that has its number commits later than others' writes may.
    // What a claim and a fenced write note is in the order of their transactions, since one waits for the other.
    const [{ upto } = { upto: this.#read }] = await owner<{ upto: string }[]>`
      select pg_snapshot_xmin(pg_current_snapshot())::text as upto`;
    const notes = await owner<Noted[]>`
      select seq::float8 as seq, at, port, what from chaos.log
      where xact >= ${this.#read}::text::xid8 and xact < ${upto}::text::xid8 order by seq`;
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
