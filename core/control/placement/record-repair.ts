/** Runs a repair of a database's check, and records it in the audit log. */
import type { Context } from "../../context";
import { recordChange } from "../audit";
import type { Database } from "./databases";

export async function recordRepair(
  ctx: Pick<Context, "db" | "actor">,
  { accountId, id, name }: Database,
  what: string,
  work: () => Promise<void>,
): Promise<void> {
  await work();
  const change = { accountId, subject: id, details: { database: name, what } };
  await recordChange(ctx.db, ctx.actor, { ...change, action: "service.repaired" });
}
