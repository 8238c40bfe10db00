/** Requests a schema check of a base from the sync engine, however recent the last one is. */
import { LruMap } from "../lru-map";
import type { WritesContext } from "./context";

/** Minimum interval between requests, ms: a burst of writes to a changed table makes one request. */
const PAUSE_MS = 2000;
/** Bases whose last request is remembered. */
const MAX_REMEMBERED = 1000;

/** Returns at once, and never fails: the schema is checked about every minute in any case. */
export type RequestSchemaCheck = (baseIds: string[]) => void;

export function schemaChecker(ctx: Pick<WritesContext, "db" | "queue" | "log">): RequestSchemaCheck {
  const askedAt = new LruMap<string, number>(MAX_REMEMBERED);
  return (baseIds) => {
    const now = performance.now();
    const due = baseIds.filter((id) => now - (askedAt.get(id) ?? Number.NEGATIVE_INFINITY) > PAUSE_MS);
    if (due.length === 0) return;
    for (const id of due) askedAt.set(id, now);
    void ask(ctx, due).catch((error: unknown) => {
      for (const id of due) askedAt.delete(id);
      ctx.log.warn({ error }, "requesting a schema check failed");
    });
  };
}

async function ask({ db, queue }: Pick<WritesContext, "db" | "queue">, baseIds: string[]): Promise<void> {
  await db`update bases set schema_check_requested_at = now() where id = any (${baseIds})`;
  for (const id of baseIds) await queue.requestSync(id);
}
