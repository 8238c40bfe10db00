/** The operations of a SQL transaction as its triggers write them down, and as a change set has them. */
import * as z from "zod/mini";
import {
  type AwaitedOperation,
  type CellValues,
  MOST_OPERATIONS,
  UNKNOWN_CELL,
} from "../../../core/control/change-sets";
import { cellsOf, UnfitValue } from "./cells";

const cells = z.record(z.string(), z.unknown());

export const writtenOperation = z.object({
  operation: z.enum(["create", "update", "delete"]),
  table: z.string(),
  record: z.optional(z.string()),
  fields: z.optional(cells),
  before: z.optional(cells),
  expected: z.optional(cells),
  filenames: z.optional(z.record(z.string(), z.nullable(z.string()))),
});
export const writtenOperations = z
  .array(writtenOperation)
  .check(z.minLength(1), z.maxLength(MOST_OPERATIONS));
type WrittenOperation = z.infer<typeof writtenOperation>;

/** Longest text that a session names itself or its writes with. */
export const MOST_SESSION_TEXT = 1000;

/**
 * @param types of the fields, by id
 * @throws UnfitValue
 */
export function convertOperation(
  { operation, table, record, fields, before, expected, filenames }: WrittenOperation,
  types: Readonly<Record<string, string>>,
): AwaitedOperation {
  const of = (values: typeof fields, had?: typeof fields) =>
    values && cellsOf(values, types, { had, filenames });
  return {
    operation,
    table,
    record,
    fields: of(fields, before),
    before: before && { ...of(before), ...partsOfLinks(before, types) },
    expected: of(expected),
  };
}

/** As text, a column has the first of its links. */
function partsOfLinks(before: CellValues, types: Readonly<Record<string, string>>): CellValues {
  const parts = Object.keys(before).filter((id) => types[id] === "links" && typeof before[id] === "string");
  return Object.fromEntries(parts.map((id) => [id, UNKNOWN_CELL]));
}

/** The same, with the reason instead of the cells if one of them cannot be what it is. */
export function convertOrRefuse(
  written: WrittenOperation,
  types: Readonly<Record<string, string>>,
): AwaitedOperation {
  try {
    return convertOperation(written, types);
  } catch (error) {
    if (!(error instanceof UnfitValue)) throw error;
    const { operation, table, record } = written;
    return { operation, table, record, refused: { errorType: "UNFIT_VALUE", error: error.message } };
  }
}
