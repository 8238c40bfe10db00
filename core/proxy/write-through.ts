/**
 * From a write that is about to be sent to replicas that show it.
 *
 * I1. A read version is taken from every replica that is waited for (`relationOf`) before the source is asked, and `settle`
 * comes back only when each of them shows the write; one that cannot, or is not waited for, is recorded for repair, and
 * `settle` says so where it may be the writer's.
 */

import { withTimeout } from "../async";
import { quotaKeyOf } from "../control/budgets";
import { requestCatchUp } from "../control/jobs";
import { isBasetideError } from "../errors";
import { proxied } from "../source";
import { isRefusal, RefusedBases, type Share, shareOf } from "./audience";
import { type ConnectedBase, ConnectedBases } from "./connected-bases";
import type { WritesContext } from "./context";
import { writeMetrics } from "./metrics";
import type { ReadAnswer, ReadRequest } from "./reads";
import { type Relation, relationOf } from "./relation";
import { startRepairLoop } from "./repair-loop";
import { Repairs } from "./repairs";
import { ReplicaBreaker } from "./replica-breaker";
import { ReplicaPool } from "./replica-pool";
import { schemaChecker } from "./schema-check";
import { type ShowContext, showWrite, type Write } from "./show-write";

/** Longest wait for a replica's read version, ms; without one the record is read anew after the write. */
const READ_VERSION_MS = 1000;
/** While a write waits for the quota its read versions are taken again this often, ms: the older, the likelier they lose. */
const REFRESH_MS = 200;

/** A write before it is sent. */
export interface PreparedWrite {
  /** Who is to show it. Empty: nobody has connected the base, as far as is known. */
  bases: ConnectedBase[];
  /** False: it has no quota of ours. */
  mayBeConnected: boolean;
  /** Resolves when every replica has given a read version, or will not. */
  ready: Promise<void>;
  /** To be called right before the source is asked: read versions that come later are worth nothing. */
  freeze(): void;
  /**
   * The source has written: brings all replicas to show it, or notes what does not. Never fails.
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

  constructor(ctx: WritesContext) {
    this.#ctx = { ...ctx, writeMetrics: writeMetrics(ctx.metrics), requestSchemaCheck: schemaChecker(ctx) };
    this.bases = new ConnectedBases(ctx);
    this.#pool = new ReplicaPool(ctx);
    this.#breaker = new ReplicaBreaker();
    this.#repairs = new Repairs(ctx, this.#ctx.writeMetrics);
    this.#loop = startRepairLoop(this.#ctx, this.#repairs, this.#pool);
  }

  /**
   * @param withReadVersions false for what writes no record, or none whose image is in the answer
   * @param writer.isWriters does a base sync with the key that writes?
   * @param writer.caller whose turn in the quota it is to read records again
   */
  async prepare(
    sourceBaseId: string,
    withReadVersions: boolean,
    { isWriters, caller }: { isWriters: (base: ConnectedBase) => boolean; caller: string },
  ): Promise<PreparedWrite> {
    const { bases, mayBeConnected } = await this.bases.current(sourceBaseId);
    const readVersions = new Map<string, number>();
    let isFrozen = false;
    const take = async (base: ConnectedBase) => {
      if (this.#breaker.isOpen(base)) return;
      const taking = this.#takeReadVersion(base).then((readVersion) => {
        if (readVersion !== null && !isFrozen) readVersions.set(base.id, readVersion);
        return readVersion;
      });
      await this.#breaker.inTime(base, taking, (readVersion) => readVersion === null);
    };
    const isGiver = (base: ConnectedBase) =>
      relationOf(base, bases, isWriters) === "awaited" && shareOf(base, isWriters(base)) === "image";
    const givers = withReadVersions ? bases.filter(isGiver) : [];
    const refresh = setInterval(() => void givers.map(take), REFRESH_MS);
    const show = (base: ConnectedBase, write: Write, all = bases) =>
      this.#showInTime(base, write, {
        readVersion: readVersions.get(base.id) ?? null,
        isWriters: isWriters(base),
        relation: relationOf(base, all, isWriters),
        caller,
      });
    return {
      bases,
      mayBeConnected,
      ready: Promise.all(givers.map(take)).then(() => {}),
      freeze() {
        isFrozen = true;
        clearInterval(refresh);
      },
      settle: async (write) => {
        const shown = Promise.all(bases.map((base) => show(base, write)));
        const { later, areAll } = await this.#connectedMeanwhile(sourceBaseId, bases, write);
        const shownLater = later.map((base) => show(base, write, [...bases, ...later]));
        const all = (await Promise.all([shown, ...shownLater])).flat();
        // What rests on its account's side, or is another's holds nobody up, unless nobody at all is shown the write.
        const told = all.filter((isShown) => isShown !== undefined);
        return areAll && told.every((isShown) => isShown) && (told.length > 0 || all.length === 0);
      },
    };
  }

  /** The base's answer to a read, where its replica can give one. @throws BasetideError `replica_unavailable`, … */
  answer(base: ConnectedBase, request: ReadRequest): Promise<ReadAnswer | undefined> {
    return this.#pool.use(base, (handle) => handle.answer(request));
  }

  /** Asks for a schema check of every base that is connected to the source base. Returns at once. */
  schemaChanged(bases: ConnectedBase[]): void {
    this.#ctx.requestSchemaCheck(bases.map((base) => base.id));
  }

  /** Has each find what was written, of which the answer does not tell. Returns at once. */
  catchUp(bases: ConnectedBase[]): void {
    for (const { id } of bases) {
      const { db, queue, log } = this.#ctx;
      // A worker that holds the base sees the request; the job is for one that rests.
      requestCatchUp(db, id)
        .then(() => queue.requestSync(id))
        .catch((error: unknown) => log.warn({ baseId: id, error }, "catch-up not requested"));
    }
  }

  quotaKey(sourceBaseId: string): string {
    return quotaKeyOf({ platform: proxied.id, sourceBaseId });
  }

  async close(): Promise<void> {
    await this.#loop.stop();
    await this.#pool.close();
  }

  async #takeReadVersion(base: ConnectedBase): Promise<number | null> {
    try {
      const readVersion = this.#pool.use(base, (handle) => handle.readVersion());
      return await withTimeout(READ_VERSION_MS, "replica_unavailable", readVersion);
    } catch (error) {
      this.#ctx.log.warn({ baseId: base.id, error }, "no read version for a write");
      return null;
    }
  }

  /**
   * Bases that were connected after the write was prepared. Their first sync may have read the record's page before
   * the source wrote; whoever connects after this has it in the first sync.
   *
   * @returns `areAll`: false where there may be others, whom the control plane knows of
   */
  async #connectedMeanwhile(
    sourceBaseId: string,
    known: ConnectedBase[],
    { tableRef, ids }: Write,
  ): Promise<{ later: ConnectedBase[]; areAll: boolean }> {
    const { bases, isCurrent, mayBeConnected } = await this.bases.current(sourceBaseId);
    const knownIds = new Set(known.map((base) => base.id));
    const later = bases.filter((base) => !knownIds.has(base.id));
    // Nobody can say who else is connected: that is found out when the control plane is back.
    if (!isCurrent) {
      const base = { platform: proxied.id, sourceBaseId, except: [...known, ...later] };
      this.#repairs.keepInMemory({ base, tableRef, ids });
    }
    return { later, areAll: isCurrent || !mayBeConnected };
  }

  /** @returns whether the replica shows it; false also where it was not waited for, undefined where it need not */
  async #showInTime(base: ConnectedBase, write: Write, writer: Writer): Promise<boolean | undefined> {
    if (writer.isWriters) this.bases.keyAccepted(base);
    const share = this.#refused.has(base) && !writer.isWriters ? "none" : shareOf(base, writer.isWriters);
    if (share === "none") return undefined;
    const forRepair = { base, tableRef: write.tableRef, ids: write.ids };
    if (writer.relation !== "awaited" || this.#breaker.isOpen(base)) {
      await this.#repairs.record(forRepair);
      return writer.relation === "others" ? undefined : false;
    }
    const showing = this.#show(base, write, { ...writer, share });
    const shown = await this.#breaker.inTime(base, showing, () => false);
    if (!shown.isLate) return shown.result;
    // Whatever becomes of it, or of this process.
    await this.#repairs.record(forRepair);
    return false;
  }

  /** @returns whether the replica shows it; undefined where it need not */
  async #show(
    base: ConnectedBase,
    write: Write,
    { share, readVersion, caller }: { share: Share } & Pick<Writer, "readVersion" | "caller">,
  ): Promise<boolean | undefined> {
    const log = this.#ctx.log.child({ baseId: base.id });
    // Writing the replica fails quickly; reading anew may have to wait for the quota.
    const signal = AbortSignal.timeout(this.#ctx.config.upstreamTimeoutMs);
    // The source has let the base's own key read what was written.
    const onAnswer = () => this.bases.keyAccepted(base);
    try {
      const image = share === "image" ? write : { ...write, answer: null };
      const showing = await this.#pool.use(base, (handle) =>
        showWrite(this.#ctx, base, handle, image, readVersion, {
          signal,
          isForClient: true,
          caller,
          onAnswer,
        }),
      );
      if (showing === "no_table") log.warn("write to a table that the source's schema does not have");
      else log.debug({ records: write.ids.length }, `write ${showing}`);
      return showing === "shown";
    } catch (error) {
      if (share === "own_read" && isRefusal(error)) {
        this.#refused.add(base);
        return undefined;
      }
      if (isBasetideError(error, "replica_unavailable")) this.#breaker.failed(base);
      log.warn({ error, records: write.ids.length }, "write recorded for repair");
      await this.#repairs.record({ base, tableRef: write.tableRef, ids: write.ids });
      return false;
    }
  }
}

/** What a replica's part in a write rests on. */
interface Writer {
  readVersion: number | null;
  /** The base's own key has written. */
  isWriters: boolean;
  relation: Relation;
  caller: string;
}
