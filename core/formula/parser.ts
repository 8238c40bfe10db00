/**
 * Parses tokens to a tree, by operator precedence (Pratt).
 *
 * I1. The tree is as deep as the text is nested, not as long as it is: consecutive operators of one precedence are one
 *     flat chain, and nesting is limited. So neither parsing nor evaluating can exhaust the stack.
 */
import { FormulaSyntaxError, type Token, tokenize } from "./lexer";

export { FormulaSyntaxError } from "./lexer";

export type FormulaOperator = "=" | "!=" | "<" | ">" | "<=" | ">=" | "&" | "+" | "-" | "*" | "/";

/** `text`: as it is written, for readers that do not know what every notation means. */
export type FormulaNode =
  | { kind: "literal"; value: string | number; text: string }
  | { kind: "field"; name: string; text: string }
  | { kind: "call"; name: string; args: FormulaNode[] }
  | { kind: "negate"; operand: FormulaNode }
  | Chain;

interface Chain {
  kind: "chain";
  power: number;
  first: FormulaNode;
  rest: ChainStep[];
}

/** One step of a chain, applied to everything on its left. */
interface ChainStep {
  operator: FormulaOperator;
  right: FormulaNode;
}

/** The precedence of each operator. All are left-associative. */
const POWER: ReadonlyMap<string, number> = new Map([
  ...(["=", "!=", "<", ">", "<=", ">="].map((operator) => [operator, 1]) as [string, number][]),
  ["&", 2],
  ["+", 3],
  ["-", 3],
  ["*", 4],
  ["/", 4],
]);

/** The deepest nesting of parentheses, calls and minus signs; real formulas stay far below. */
const MAX_DEPTH = 200;

/** @throws FormulaSyntaxError */
export function parseFormula(text: string): FormulaNode {
  return new Parser(tokenize(text)).whole();
}

class Parser {
  private position = 0;
  private depth = 0;

  constructor(private readonly tokens: Token[]) {}

  whole(): FormulaNode {
    const node = this.expression(0);
    if (this.position < this.tokens.length) throw new FormulaSyntaxError();
    return node;
  }

  private expression(minPower: number): FormulaNode {
    let left = this.operand();
    /** What is in parentheses stays a part of its own. */
    let open: Chain | undefined;
    for (;;) {
      const token = this.tokens[this.position];
      const power = token?.kind === "symbol" ? POWER.get(token.text) : undefined;
      if (token?.kind !== "symbol" || power === undefined || power < minPower) return left;
      this.position++;
      const step = { operator: token.text as FormulaOperator, right: this.expression(power + 1) };
      if (open?.power === power) open.rest.push(step);
      else left = open = { kind: "chain", power, first: left, rest: [step] };
    }
  }

  private operand(): FormulaNode {
    if (++this.depth > MAX_DEPTH) throw new FormulaSyntaxError();
    const node = this.operandOf(this.tokens[this.position++]);
    this.depth--;
    return node;
  }

  private operandOf(token: Token | undefined): FormulaNode {
    if (token === undefined) throw new FormulaSyntaxError();
    const { text } = token;
    if (token.kind === "number" || token.kind === "string")
      return { kind: "literal", value: token.value, text };
    if (token.kind === "field") return { kind: "field", name: token.name, text };
    if (token.kind === "word") {
      return this.take("(")
        ? { kind: "call", name: text, args: this.args() }
        : { kind: "field", name: text, text };
    }
    if (text === "-") return { kind: "negate", operand: this.operand() };
    if (text !== "(") throw new FormulaSyntaxError();
    const inner = this.expression(0);
    this.expect(")");
    return inner;
  }

  /** Reads up to and including the closing parenthesis. */
  private args(): FormulaNode[] {
    const args: FormulaNode[] = [];
    if (this.take(")")) return args;
    do args.push(this.expression(0));
    while (this.take(","));
    this.expect(")");
    return args;
  }

  private take(symbol: string): boolean {
    const token = this.tokens[this.position];
    if (token?.kind !== "symbol" || token.text !== symbol) return false;
    this.position++;
    return true;
  }

  private expect(symbol: string): void {
    if (!this.take(symbol)) throw new FormulaSyntaxError();
  }
}
