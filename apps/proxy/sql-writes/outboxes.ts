/**
 * Reads the outboxes of bases whose SQL writes are queued. Each is read by one proxy, on one connection, which hears of every
 * transaction. An outbox in which nothing waits is read about once a minute besides, in case something was not heard.
 */
import { Notifier, wait } from "../../../core/async";
import type { Context } from "../../../core/context";
import { OUTBOX_CHANNEL } from "../../../core/control/bases";
import { type OutboxBase, outboxesOf, releaseOutbox } from "../../../core/control/fleet";
import { databaseAdminUrl, getDatabase } from "../../../core/control/placement";
import type { Running } from "../../../core/process";
import { type Outbox, openOutbox } from "../../../core/replica";
import { MINUTE_MS } from "../../../core/time-units";
import { type Found, readOutbox } from "./outbox-reader";

/** How often the bases to read are looked up, ms; changes of settings are announced. */
const POLL_MS = 10_000;
/** Shortest time between two reads of one outbox, ms: anybody may notify its channel. */
const SHORTEST_PAUSE_MS = 250;
/** The longest while something waits, ms: until it has a result, each pause is twice as long as the one before. */
const LONGEST_PAUSE_MS = 8000;

type OutboxContext = Pick<Context, "config" | "db" | "log" | "secrets">;

/** @param proxyId under which this proxy reports itself */
export function startOutboxes(ctx: OutboxContext, proxyId: string): Running {
  const { db, log } = ctx;
  const over = new AbortController();
  const wake = new Notifier();
  const readers = new Map<string, { stop: AbortController; isOver: Promise<void> }>();
  let listening: Promise<{ unlisten(): Promise<void> }> | undefined;

  function listen(): void {
    const notify = () => wake.notify();
    listening ??= db.listen(OUTBOX_CHANNEL, notify, notify);
    listening.catch((error: unknown) => {
      listening = undefined;
      log.debug({ error }, "listening for outboxes failed");
    });
  }

  function divide(bases: OutboxBase[]): void {
    const wanted = new Map(bases.map((base) => [JSON.stringify(base), base]));
    for (const [key, { stop }] of readers) if (!wanted.has(key)) stop.abort();
    for (const [key, base] of wanted) {
      if (readers.has(key)) continue;
      const stop = new AbortController();
      const isOver = followOutbox(ctx, base, stop.signal).finally(() => {
        readers.delete(key);
      });
      readers.set(key, { stop, isOver });
    }
  }

  async function loop(): Promise<void> {
    while (!over.signal.aborted) {
      listen();
      try {
        divide(await outboxesOf(db, proxyId));
      } catch (error) {
        log.debug({ error }, "looking for outboxes failed");
      }
      await wake.wait(POLL_MS, over.signal).catch(() => {});
    }
  }

  const looping = loop();
  return {
    async stop() {
      over.abort();
      await looping;
      for (const { stop } of readers.values()) stop.abort();
      await Promise.all([...readers.values()].map(({ isOver }) => isOver));
      await (await listening?.catch(() => undefined))?.unlisten().catch(() => {});
    },
  };
}

/**
 * Reads the outbox of a base until `stop` aborts, or until nothing in it waits if its writes are no longer queued: neither by
 * its settings nor by its database, which a change of settings that failed has left behind.
 */
async function followOutbox(ctx: OutboxContext, base: OutboxBase, stop: AbortSignal): Promise<void> {
  const log = ctx.log.child({ baseId: base.id });
  const wake = new Notifier();
  const reading = { ctx, baseId: base.id };
  let outbox: Outbox | undefined;
  const open = async () => {
    const url = await databaseAdminUrl(ctx, await getDatabase(ctx.db, base.databaseId));
    const opened = await openOutbox({ url, schema: base.schema }, () => wake.notify(), stop);
    void opened.lost.then(() => {
      if (outbox === opened) outbox = undefined;
      wake.notify();
    });
    return opened;
  };
  const read = async (): Promise<Found | "failed"> => {
    try {
      outbox ??= await open();
      return await readOutbox(reading, outbox);
    } catch (error) {
      if (!stop.aborted && last !== "failed") log.warn({ error }, "reading an outbox of SQL writes failed");
      void outbox?.close();
      outbox = undefined;
      return "failed";
    }
  };
  let last: Found | "failed" = "progress";
  let pauseMs = SHORTEST_PAUSE_MS;
  while (!stop.aborted) {
    const found = await read();
    // What was being committed while the setting changed is there by the second time.
    const isLast = found === "nothing" && last === "nothing" && !base.isQueued;
    if (isLast && (await outbox?.isOpen().catch(() => true)) === false) {
      await releaseOutbox(ctx.db, base.id).catch((error: unknown) =>
        log.debug({ error }, "releasing failed"),
      );
      break;
    }
    last = found;
    pauseMs =
      found === "waiting" || found === "failed" ? Math.min(2 * pauseMs, LONGEST_PAUSE_MS) : SHORTEST_PAUSE_MS;
    await wait(SHORTEST_PAUSE_MS, stop).catch(() => {});
    await wake.wait(found === "nothing" ? MINUTE_MS : pauseMs, stop).catch(() => {});
  }
  await outbox?.close();
}
