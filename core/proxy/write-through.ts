/**
 * Carries a write from the moment before it is sent until replicas show it.
 *
 * I1. A read version is taken from every awaited replica (`relationOf`) before the source is asked, and `settle`
 * returns only when each of them shows the write. A replica that cannot show it, or is not awaited, is recorded for
 * repair; `settle` reports this if the replica may be the writer's.
 */

import { Turns, withTimeout } from "../async";
import { quotaKeyOf } from "../control/budgets";
import { requestCatchUp } from "../control/jobs";
import { BasetideError, isBasetideError } from "../errors";
import { LONGEST_ANSWER_MS, READER_CONNECTIONS } from "../replica";
import { type Call, proxied } from "../source";
import { isRefusal, RefusedBases, type Share, shareOf } from "./audience";
import { type BaseElsewhere, type ConnectedBase, ConnectedBases, replicaKey } from "./connected-bases";
import type { WritesContext } from "./context";
import { writeMetrics } from "./metrics";
import type { ReadAnswer, ReadRequest } from "./reads";
import { type Relation, relationOf } from "./relation";
import { startRepairLoop } from "./repair-loop";
import { Repairs } from "./repairs";
import { ReplicaBreaker } from "./replica-breaker";
import type { BegunWrite } from "./replica-handle";
import { ReplicaPool } from "./replica-pool";
import { schemaChecker } from "./schema-check";
import { type ShowContext, showWrite, type Write } from "./show-write";

/** Reads of one account that are answered at once: half of a process's connections for them to a server (I8). */
const READS_AT_ONCE = READER_CONNECTIONS / 2;
/** Longest wait for a replica's read version, ms; without one the record is read again after the write. */
const READ_VERSION_MS = 1000;

/** A write before it is sent. */
export interface PreparedWrite {
  /** The bases that must show it. Empty: no account has connected the base, as far as is known. */
  bases: ConnectedBase[];
  /** False: no account has connected the base, as far as is known. */
  mayBeConnected: boolean;
  /** Another control plane has the base by now: the write must not be sent. */
  elsewhere: BaseElsewhere | undefined;
  /**
   * Called when the source has written: brings all replicas to show the write, or records it for repair. Never fails.
   *
   * @returns whether all of them show it, as far as can be known
   */
  settle(write: Write): Promise<boolean>;
}

export class WriteThrough {
  readonly bases: ConnectedBases;
  readonly #ctx: ShowContext;
  readonly #pool: ReplicaPool;
  readonly #breaker: ReplicaBreaker;
  readonly #repairs: Repairs;
  readonly #loop: { stop(): Promise<void> };
  readonly #refused = new RefusedBases();
  readonly #reads = new Turns<string>(READS_AT_ONCE);

  constructor(ctx: WritesContext) {
    this.#ctx = { ...ctx, writeMetrics: writeMetrics(ctx.metrics), requestSchemaCheck: schemaChecker(ctx) };
    this.bases = new ConnectedBases(ctx);
    this.#pool = new ReplicaPool(ctx);
    this.#breaker = new ReplicaBreaker();
    this.#repairs = new Repairs(ctx, this.#ctx.writeMetrics);
    this.#loop = startRepairLoop(this.#ctx, this.#repairs, this.#pool);
  }

  /**
   * Takes a read version from every awaited replica. The write must be sent as soon as this resolves: an older read version
   * is more likely to lose. Bases that were connected in the last seconds may be missing; `settle` finds them. Never fails.
   *
   * @param call its answer has the images of its records only if it is a write
   * @param writer.isWriters does a base sync with the writing key?
   * @param writer.caller the caller in whose share of the quota records are read again
   */
  async prepare(
    sourceBaseId: string,
    call: Call,
    { isWriters, caller }: { isWriters: (base: ConnectedBase) => boolean; caller: string },
  ): Promise<PreparedWrite> {
    const { bases, mayBeConnected, elsewhere } = await this.bases.recent(sourceBaseId);
    const givers = bases.filter(
      (base) =>
        call.kind === "write" &&
        relationOf(base, bases, isWriters) === "awaited" &&
        shareOf(base, isWriters(base)) === "image",
    );
    /** By replica: a base may be moved to another one, which counts its own versions. */
    const begun = new Map<string, BegunWrite>();
    const begin = async (base: ConnectedBase) => {
      const result = await this.#beginInTime(base, call);
      if (result) begun.set(replicaKey(base), result);
    };
    await Promise.all(givers.map(begin));
    const show = (base: ConnectedBase, write: Write, all = bases) =>
      this.#showInTime(base, write, {
        begun: begun.get(replicaKey(base)),
        isWriters: isWriters(base),
        relation: relationOf(base, all, isWriters),
        caller,
      });
    return {
      bases,
      mayBeConnected,
      elsewhere,
      settle: async (write) => {
        const shown = Promise.all(bases.map((base) => show(base, write)));
        const { later, areAll } = await this.#connectedMeanwhile(sourceBaseId, bases, write);
        const shownLater = later.map((base) => show(base, write, [...bases, ...later]));
        const all = (await Promise.all([shown, ...shownLater])).flat();
        // Bases that pause or need attention, and those of other accounts, do not affect the result, unless no base at
        // all is shown the write.
        const told = all.filter((isShown) => isShown !== undefined);
        return areAll && told.every((isShown) => isShown) && (told.length > 0 || all.length === 0);
      },
    };
  }

  /**
   * Returns the base's answer to a read, if its replica can give one.
   *
   * @throws BasetideError `replica_busy` if other reads of the account take too long; `replica_unavailable`, …
   */
  answer(base: ConnectedBase, request: ReadRequest): Promise<ReadAnswer | undefined> {
    const read = () => this.#pool.use(base, (handle) => handle.answer(request, base.failingTables), "reads");
    const tooLate = () => new BasetideError("replica_busy");
    return this.#reads.run(base.accountId, read, { patienceMs: LONGEST_ANSWER_MS, tooLate });
  }

  /** Requests a schema check of every base that is connected to the source base. Returns at once. */
  schemaChanged(bases: ConnectedBase[]): void {
    this.#ctx.requestSchemaCheck(bases.map((base) => base.id));
  }

  /** Makes each base find what was written, for calls whose answer does not say. Returns at once. */
  catchUp(bases: ConnectedBase[]): void {
    for (const { id } of bases) {
      const { db, queue, log } = this.#ctx;
      // A worker that holds the base's lease sees the request; the job is for a base that no worker holds.
      requestCatchUp(db, id)
        .then(() => queue.requestSync(id))
        .catch((error: unknown) => log.warn({ baseId: id, error }, "requesting a catch-up failed"));
    }
  }

  quotaKey(sourceBaseId: string): string {
    return quotaKeyOf({ platform: proxied.id, sourceBaseId });
  }

  async close(): Promise<void> {
    await this.#loop.stop();
    await this.#pool.close();
  }

  /** Begins a write on a replica, unless it takes too long or writes skip the replica. Never fails. */
  async #beginInTime(base: ConnectedBase, call: Call): Promise<BegunWrite | undefined> {
    if (call.kind !== "write" || this.#breaker.isOpen(base)) return undefined;
    const beginning = this.#begin(base, call);
    const late = () => ({ isLate: true }) as const;
    const begun = this.#breaker.inTime(base, beginning, (result) => result === "failed");
    const inTime = await withTimeout(READ_VERSION_MS, late, begun);
    return inTime.isLate || typeof inTime.result === "string" ? undefined : inTime.result;
  }

  async #begin(
    base: ConnectedBase,
    call: Call & { kind: "write" },
  ): Promise<BegunWrite | "locked" | "failed"> {
    const { tableRef } = call;
    // The statement would wait for a table that is locked.
    const ids = this.#breaker.isOpen(base, tableRef) ? [] : call.ids;
    try {
      return await this.#pool.use(base, (handle) => handle.beginWrite(tableRef, ids));
    } catch (error) {
      this.#ctx.log.warn({ baseId: base.id, error }, "reading a read version for a write failed");
      if (!isBasetideError(error, "replica_busy")) return "failed";
      this.#breaker.locked(base, tableRef);
      return "locked";
    }
  }

  /**
   * Finds bases that were connected, or moved to another replica, after the lookup that the write was prepared with. Their
   * first sync may have read the record's page before the source wrote; a base that is connected later has the write in
   * its first sync.
   *
   * @returns `areAll`: false if there may be others that only the control plane knows
   */
  async #connectedMeanwhile(
    sourceBaseId: string,
    known: ConnectedBase[],
    { tableRef, ids }: Write,
  ): Promise<{ later: ConnectedBase[]; areAll: boolean }> {
    const { bases, isCurrent, mayBeConnected } = await this.bases.current(sourceBaseId);
    const replicas = new Set(known.map(replicaKey));
    const later = bases.filter((base) => !replicas.has(replicaKey(base)));
    // It is unknown which other bases are connected; they are looked up when the control plane is back.
    if (!isCurrent) {
      const base = { platform: proxied.id, sourceBaseId, except: [...known, ...later] };
      this.#repairs.keepInMemory({ base, tableRef, ids });
    }
    return { later, areAll: isCurrent || !mayBeConnected };
  }

  /**
   * @returns whether the replica shows it; false also if the write did not wait for it, undefined if it need not show
   *   it
   */
  async #showInTime(base: ConnectedBase, write: Write, writer: Writer): Promise<boolean | undefined> {
    if (writer.isWriters) this.bases.keyAccepted(base);
    const share = this.#refused.has(base) && !writer.isWriters ? "none" : shareOf(base, writer.isWriters);
    if (share === "none") return undefined;
    const forRepair = { base, tableRef: write.tableRef, ids: write.ids };
    if (writer.relation !== "awaited" || this.#breaker.isOpen(base, write.tableRef)) {
      await this.#repairs.record(forRepair);
      return writer.relation === "others" ? undefined : false;
    }
    const showing = this.#show(base, write, { ...writer, share });
    const shown = await this.#breaker.inTime(base, showing, () => false);
    if (!shown.isLate) return shown.result;
    // Must be durable even if this process dies.
    await this.#repairs.record(forRepair);
    return false;
  }

  /** @returns whether the replica shows it; undefined if it need not */
  async #show(
    base: ConnectedBase,
    write: Write,
    { share, begun, caller }: { share: Share } & Pick<Writer, "begun" | "caller">,
  ): Promise<boolean | undefined> {
    const log = this.#ctx.log.child({ baseId: base.id });
    // Writing the replica fails quickly; reading again may have to wait for the quota.
    const signal = AbortSignal.timeout(this.#ctx.config.upstreamTimeoutMs);
    // The source has let the base's own key read what was written.
    const onAnswer = () => this.bases.keyAccepted(base);
    try {
      const image = { ...write, locatedIn: begun?.locatedIn, ...(share === "image" ? {} : { answer: null }) };
      const showing = await this.#pool.use(base, (handle) =>
        showWrite(this.#ctx, base, handle, image, begun?.readVersion ?? null, {
          signal,
          isForClient: true,
          caller,
          onAnswer,
        }),
      );
      if (showing === "no_table") log.warn("write to a table that Airtable's schema does not have");
      else log.debug({ records: write.ids.length }, `write ${showing}`);
      // A table that is not copied has nothing that SQL could still show.
      return showing === "shown" || showing === "left_out";
    } catch (error) {
      if (share === "own_read" && isRefusal(error)) {
        this.#refused.add(base);
        return undefined;
      }
      if (isBasetideError(error, "replica_unavailable")) this.#breaker.failed(base);
      if (isBasetideError(error, "replica_busy") && error.details.isOfRows)
        this.#breaker.locked(base, write.tableRef);
      log.warn({ error, records: write.ids.length }, "write recorded for repair");
      await this.#repairs.record({ base, tableRef: write.tableRef, ids: write.ids });
      return false;
    }
  }
}

/** The properties of a write that decide how one replica is handled. */
interface Writer {
  /** Undefined: there is no read version, and the records are read again. */
  begun: BegunWrite | undefined;
  /** The base's own key made the write. */
  isWriters: boolean;
  relation: Relation;
  caller: string;
}
