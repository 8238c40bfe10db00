/**
 * The source's formula language, as far as filters and formula fields of the sandbox need it.
 *
 * Anything outside the subset is rejected when the text is compiled, never guessed. Where the source does not document
 * a value's behavior, these choices were made: blank equals 0 as well as ""; text never equals a number; an error in
 * any argument of AND and OR is their result; a blank date is neither before nor after another and cannot be formatted,
 * added to or subtracted; MOD keeps the sign of its first argument; all times are GMT.
 */
export { FormulaSyntaxError } from "../../../core/formula";
export { cellToFormulaValue, formulaResultToCell } from "./cell";
export { compileFormula } from "./compile";
export {
  type CompiledFormula,
  FormulaDate,
  FormulaError,
  type FormulaValue,
  type RowContext,
} from "./types";
