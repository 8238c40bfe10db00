/**
 * The input and output types of formulas.
 *
 * A value is plain JavaScript where possible; dates and errors are classes, so that `instanceof` distinguishes them
 * from text. Blank is `null`.
 */

/** A moment. `hasTime` is false for a calendar day, which is then midnight UTC. */
export class FormulaDate {
  /** @param ms since the Unix epoch */
  constructor(
    readonly ms: number,
    readonly hasTime = true,
  ) {}
}

/** A cell whose formula fails. It propagates: whatever is computed from an error is that error. */
export class FormulaError {
  constructor(readonly text = "#ERROR!") {}
}

/** The only error that evaluation produces; cells may contain others. */
export const ERROR = new FormulaError();

/** Booleans come only from cells: in a formula they count as 1 and 0, and formulas return 1 and 0. */
export type FormulaValue =
  | string
  | number
  | boolean
  | null
  | FormulaDate
  | FormulaError
  | readonly FormulaValue[];

/** Returns the id for a field's name (any case) or its `fld…` id, or undefined if the table has no such field. */
export type FieldResolver = (nameOrId: string) => string | undefined;

/** The record that a formula reads. All times are ms since the Unix epoch. */
export interface RowContext {
  recordId: string;
  createdTime: number;
  /** When one of `fieldIds` (without it: any field that users edit) last changed; null for never. */
  lastModifiedTime(fieldIds?: readonly string[]): number | null;
  /** The cell as converted by `cellToFormulaValue`; null for an empty one, the linked rows' names for a link. */
  cell(fieldId: string): FormulaValue;
  now(): number;
}

export interface CompiledFormula {
  /** The fields that the text names, each once, in the order of the text. */
  referencedFieldIds: string[];
  /** The ids if the formula is only `RECORD_ID()='rec…'` or an OR of such; else null. */
  recordIds: string[] | null;
  /** The value for one record. Never throws; a failure is a `FormulaError`. */
  evaluate(row: RowContext): FormulaValue;
  /** Whether a filter includes the record: not for 0, false, blank, "", NaN, [] or an error. */
  isTrue(row: RowContext): boolean;
}
