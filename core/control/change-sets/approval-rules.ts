/**
 * Approves a proposal by the rules of its agent (`control/agents/rules.ts`): updates alone, of fields that a rule names, and
 * no more in an hour than it allows. One operation that no rule covers leaves the whole proposal to a person.
 */
import type { TransactionSql } from "postgres";
import type { ChangeOperation } from "./operations";

/** The rules that approve a proposal. */
export interface RuleApproval {
  ids: string[];
  /** The owners who made them. */
  createdBy: string[];
}

/**
 * Returns the rules that approve the operations, if they do. The caller holds the agent's row, so that concurrent proposals
 * count one after the other.
 */
export async function approvalByRules(
  tx: TransactionSql,
  { agentId, baseId }: { agentId: string; baseId: string },
  operations: readonly ChangeOperation[],
): Promise<RuleApproval | undefined> {
  const rules = await tx<
    { id: string; tableId: string; fields: string[]; updatesPerHour: number; createdBy: string }[]
  >`
    select id, table_id as "tableId", fields, updates_per_hour as "updatesPerHour", created_by as "createdBy"
    from agent_rules where agent_id = ${agentId} and base_id = ${baseId}`;
  const used = new Map<string, number>();
  for (const { operation, table, fields } of operations) {
    const rule = rules.find(({ tableId }) => tableId === table);
    const isCovered = rule && Object.keys(fields ?? {}).every((field) => rule.fields.includes(field));
    if (operation !== "update" || !isCovered || Object.values(fields ?? {}).some(hasAddress))
      return undefined;
    used.set(table, (used.get(table) ?? 0) + 1);
  }
  const before = await tx<{ table: string; count: number }[]>`
    select i.table_ref as "table", count(*)::int as count
    from change_sets as s join change_items as i on i.set_id = s.id
    where s.agent_id = ${agentId} and s.base_id = ${baseId} and s.by_rule
      and s.decided_at > now() - interval '1 hour'
    group by i.table_ref`;
  const applied = rules.filter(({ tableId }) => used.has(tableId));
  const isOver = applied.some(({ tableId, updatesPerHour }) => {
    const earlier = before.find(({ table }) => table === tableId)?.count ?? 0;
    return earlier + used.get(tableId)! > updatesPerHour;
  });
  if (isOver) return undefined;
  return { ids: applied.map(({ id }) => id), createdBy: [...new Set(applied.map((rule) => rule.createdBy))] };
}

/** Of a file that the source would fetch: the field may have become one of attachments after the rule was made. */
function hasAddress(cell: unknown): boolean {
  return Array.isArray(cell) && cell.some((one) => typeof one === "object" && one !== null && "url" in one);
}
