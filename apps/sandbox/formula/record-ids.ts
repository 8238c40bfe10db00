/**
 * Finds the records that a formula selects by id, so that not every row must be checked.
 */
import type { FormulaNode } from "../../../core/formula";

/**
 * The ids if the formula is `RECORD_ID()='rec…'` (either way round) or an OR of such, each once, in the order of the
 * text; null for any other formula.
 */
export function recordIdsIn(node: FormulaNode): string[] | null {
  const ids = new Set<string>();
  return collect(node, ids) ? [...ids] : null;
}

function collect(node: FormulaNode, ids: Set<string>): boolean {
  if (node.kind === "call") {
    return node.name.toUpperCase() === "OR" && node.args.every((arg) => collect(arg, ids));
  }
  if (node.kind !== "chain" || node.rest.length !== 1) return false;
  const { operator, right } = node.rest[0] as { operator: string; right: FormulaNode };
  if (operator !== "=") return false;
  const id = idComparedTo(node.first, right) ?? idComparedTo(right, node.first);
  if (id === undefined) return false;
  ids.add(id);
  return true;
}

function idComparedTo(call: FormulaNode, id: FormulaNode): string | undefined {
  const isRecordId = call.kind === "call" && call.name.toUpperCase() === "RECORD_ID";
  return isRecordId && id.kind === "literal" && typeof id.value === "string" ? id.value : undefined;
}
