/** The grammar of the source's formulas. What they mean is decided by who evaluates or translates them. */
export { type FormulaNode, type FormulaOperator, FormulaSyntaxError, parseFormula } from "./parser";
