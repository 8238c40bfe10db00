/** Results of a database's checks that can be repaired; the audit log records the repair. */
import { type CheckResult, problem } from "../../check-result";
import type { Context } from "../../context";
import { recordChange } from "../audit";
import type { Database } from "./databases";

/** @param remedy what `work` does */
export function repairable(
  { db, actor }: Pick<Context, "db" | "actor">,
  { accountId, id, name }: Pick<Database, "accountId" | "id" | "name">,
  message: string,
  remedy: string,
  work: () => Promise<void>,
  result: (check: "replica", message: string, remedy: string) => CheckResult = problem,
): CheckResult {
  const fix = async () => {
    await work();
    const change = { accountId, subject: id, details: { database: name, what: message } };
    await recordChange(db, actor, { ...change, action: "service.repaired" });
  };
  return { ...result("replica", `${name}: ${message}`, remedy), fix };
}
