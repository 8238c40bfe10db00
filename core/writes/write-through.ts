/**
 * From a write that is about to be sent to replicas that show it.
 *
 * I1. A ticket is taken from every replica before the source is asked, and `settle` comes back only when each of
 * them shows the write; one that cannot is noted for repair, and `settle` says so.
 */
import type { ReadAnswer, ReadRequest } from "../reads";
import { quotaKeyOf } from "../sync";
import { type ConnectedBase, ConnectedBases, PLATFORM } from "./connected-bases";
import type { WritesContext } from "./context";
import { writeMetrics } from "./metrics";
import { startRepairLoop } from "./repair-loop";
import { Repairs } from "./repairs";
import { ReplicaPool } from "./replica-pool";
import { schemaLooks } from "./schema-look";
import { type ShowContext, showWrite, type Write } from "./show-write";
import { within } from "./within";

/** Longest wait for a replica's ticket, ms; without one the record is read anew after the write. */
const TICKET_MS = 1000;
/** While a write waits for the quota its tickets are taken again this often, ms: the older, the likelier they lose. */
const REFRESH_MS = 200;

/** A write before it is sent. */
export interface PreparedWrite {
  /** Who is to show it. Empty: nobody has connected the base, as far as is known. */
  bases: ConnectedBase[];
  /** False: it has no quota of ours. */
  mayBeConnected: boolean;
  /** Resolves when every replica has given a ticket, or will not. */
  ready: Promise<void>;
  /** To be called right before the source is asked: tickets that come later are worth nothing. */
  seal(): void;
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
  readonly #repairs: Repairs;
  readonly #loop: { stop(): Promise<void> };

  constructor(ctx: WritesContext) {
    this.#ctx = { ...ctx, writeMetrics: writeMetrics(ctx.metrics), requestLook: schemaLooks(ctx) };
    this.bases = new ConnectedBases(ctx);
    this.#pool = new ReplicaPool(ctx);
    this.#repairs = new Repairs(ctx, this.#ctx.writeMetrics);
    this.#loop = startRepairLoop(this.#ctx, this.#repairs, this.#pool);
  }

  /** @param withTickets false for what writes no record, or none whose image is in the answer */
  async prepare(sourceBaseId: string, withTickets: boolean): Promise<PreparedWrite> {
    const { bases, mayBeConnected } = await this.bases.current(sourceBaseId);
    const tickets = new Map<string, number>();
    let isSealed = false;
    const take = async (base: ConnectedBase) => {
      const ticket = await this.#takeTicket(base);
      if (ticket !== null && !isSealed) tickets.set(base.id, ticket);
    };
    const givers = withTickets ? bases : [];
    const refresh = setInterval(() => void givers.map(take), REFRESH_MS);
    const show = (base: ConnectedBase, write: Write) => this.#show(base, write, tickets.get(base.id) ?? null);
    return {
      bases,
      mayBeConnected,
      ready: Promise.all(givers.map(take)).then(() => {}),
      seal() {
        isSealed = true;
        clearInterval(refresh);
      },
      settle: async (write) => {
        const shown = Promise.all(bases.map((base) => show(base, write)));
        const { later, areAll } = await this.#connectedMeanwhile(sourceBaseId, bases, write);
        const all = (await Promise.all([shown, ...later.map((base) => show(base, write))])).flat();
        return areAll && all.every((isShown) => isShown);
      },
    };
  }

  /** The base's answer to a read, where its replica can give one. @throws BasetideError `replica_unavailable`, … */
  answer(base: ConnectedBase, request: ReadRequest): Promise<ReadAnswer | undefined> {
    return this.#pool.use(base, (handle) => handle.answer(request));
  }

  /** Asks for a look at the schema of every base that is connected to the source base. Returns at once. */
  schemaChanged(bases: ConnectedBase[]): void {
    this.#ctx.requestLook(bases.map((base) => base.id));
  }

  /** Asks for a sync of each. Returns at once. */
  requestSync(bases: ConnectedBase[]): void {
    for (const base of bases) {
      this.#ctx.queue.requestSync(base.id).catch((error: unknown) => {
        this.#ctx.log.warn({ baseId: base.id, error }, "sync not requested");
      });
    }
  }

  quotaKey(sourceBaseId: string): string {
    return quotaKeyOf({ platform: PLATFORM, sourceBaseId });
  }

  async close(): Promise<void> {
    await this.#loop.stop();
    await this.#pool.close();
  }

  async #takeTicket(base: ConnectedBase): Promise<number | null> {
    try {
      const ticket = this.#pool.use(base, (handle) => handle.ticket());
      return await within(TICKET_MS, "replica_unavailable", ticket);
    } catch (error) {
      this.#ctx.log.warn({ baseId: base.id, error }, "no ticket for a write");
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
      const base = { platform: PLATFORM, sourceBaseId, except: [...known, ...later] };
      this.#repairs.keep({ base, tableRef, ids });
    }
    return { later, areAll: isCurrent || !mayBeConnected };
  }

  /** @returns whether the replica shows it */
  async #show(base: ConnectedBase, write: Write, ticket: number | null): Promise<boolean> {
    const log = this.#ctx.log.child({ baseId: base.id });
    // Writing the replica fails quickly; reading anew may have to wait for the quota.
    const signal = AbortSignal.timeout(this.#ctx.config.upstreamTimeoutMs);
    try {
      const showing = await this.#pool.use(base, (handle) =>
        showWrite(this.#ctx, base, handle, write, ticket, { signal, isForClient: true }),
      );
      if (showing === "no_table") log.warn("write to a table that the source's schema does not have");
      else log.debug({ records: write.ids.length }, `write ${showing}`);
      return showing === "shown";
    } catch (error) {
      log.warn({ error, records: write.ids.length }, "write noted for repair");
      await this.#repairs.note({ base, tableRef: write.tableRef, ids: write.ids });
      return false;
    }
  }
}
