/** The operations of a change set, and what they must be like. */
import { invalid } from "../../errors";
import { proxied } from "../../source";

/** Values by the name or id of their field, in the form of the source's API. */
export type CellValues = Record<string, unknown>;

export const operationKinds = ["create", "update", "delete"] as const;
export type OperationKind = (typeof operationKinds)[number];

export interface ChangeOperation {
  operation: OperationKind;
  /** The source's id or name of the table. */
  table: string;
  /** The record's id; undefined for a create. */
  record?: string | undefined;
  /** The cells that are written; undefined for a delete. */
  fields?: CellValues | undefined;
  /** Cells that the record must have when it is changed. */
  expected?: CellValues | undefined;
}

export const MOST_OPERATIONS = 10_000;
/** Of a proposal: whoever decides sees all of it at once. */
export const MOST_PROPOSED = 500;

const { ids } = proxied;
const isFieldId = (key: string) => ids.isSurely("field", key);

/** In a cell of links: the record that the operation at this position creates. */
interface CreatedBy {
  created_by: number;
}

export function isCreatedBy(value: unknown): value is CreatedBy {
  return typeof value === "object" && value !== null && Number.isInteger((value as CreatedBy).created_by);
}

/** In place of a cell that was replaced, if SQL has only a part of it. */
export const UNKNOWN_CELL = { is_unknown: true } as const;

export function isUnknownCell(cell: unknown): boolean {
  return typeof cell === "object" && cell !== null && "is_unknown" in cell;
}

/** Returns whether the cells are by the ids of their fields, and not by their names. */
export function areById(cells: CellValues): boolean {
  return Object.keys(cells).some((key) => isFieldId(key));
}

/** Returns the positions of the operations whose new records these cells link to. */
export function linksIn(cells: CellValues | undefined): number[] {
  return Object.values(cells ?? {}).flatMap((cell) =>
    Array.isArray(cell) ? cell.filter(isCreatedBy).map((link) => link.created_by) : [],
  );
}

/** @throws BasetideError `invalid_request`, which names the operation and what is wrong with it */
export function checkOperations(operations: ChangeOperation[], isProposal: boolean): void {
  const [what, most] = isProposal ? ["proposal", MOST_PROPOSED] : ["change set", MOST_OPERATIONS];
  if (operations.length === 0 || operations.length > most)
    throw invalid(`A ${what} has 1 to ${most} operations`);
  for (const [position, operation] of operations.entries()) {
    const wrong = problemOf(operation, position, operations);
    if (wrong) throw invalid(`operations[${position}]: ${wrong}`);
  }
}

function problemOf(
  { operation, record, fields, expected }: ChangeOperation,
  position: number,
  all: ChangeOperation[],
): string | undefined {
  if (operation === "create") {
    if (record !== undefined || expected !== undefined) return "a create has neither `record` nor `expected`";
    if (!fields) return "a create needs `fields`, which may be empty";
  } else if (record === undefined || !ids.isSurely("record", record))
    return "`record` must be the id of a record";
  if (operation === "update" && Object.keys(fields ?? {}).length === 0) return "an update needs `fields`";
  if (operation === "delete" && fields) return "a delete has no `fields`";
  const keys = [fields, expected]
    .filter((cells) => cells !== undefined)
    .flatMap((cells) => Object.keys(cells));
  if (new Set(keys.map((key) => isFieldId(key))).size > 1)
    return "use either ids or names of fields, not both";
  const unmade = linksIn(fields).find((at) => at >= position || all[at]?.operation !== "create");
  if (unmade !== undefined) return `created_by: operations[${unmade}] is not an earlier create`;
  return undefined;
}
