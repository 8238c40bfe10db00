/**
 * Parses tokens to a tree, by operator precedence (Pratt).
 *
 * I1. The tree is as deep as the text is nested, not as long as it is: consecutive operators of one precedence are one
 *     flat chain, and nesting is limited. So neither parsing nor evaluating can exhaust the stack.
 */
import { type Token, tokenize } from "./lexer";
import { FormulaSyntaxError } from "./types";

export type Operator = "=" | "!=" | "<" | ">" | "<=" | ">=" | "&" | "+" | "-" | "*" | "/";

export type FormulaNode =
  | { kind: "literal"; value: string | number }
  | { kind: "field"; name: string }
  | { kind: "call"; name: string; args: FormulaNode[] }
  | { kind: "negate"; operand: FormulaNode }
  | { kind: "chain"; power: number; first: FormulaNode; rest: ChainStep[] };

/** One step of a chain, applied to everything on its left. */
interface ChainStep {
  operator: Operator;
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
export function parse(text: string): FormulaNode {
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
    for (;;) {
      const token = this.tokens[this.position];
      const power = token?.kind === "symbol" ? POWER.get(token.text) : undefined;
      if (token?.kind !== "symbol" || power === undefined || power < minPower) return left;
      this.position++;
      left = chain(left, power, { operator: token.text as Operator, right: this.expression(power + 1) });
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
    if (token.kind === "number" || token.kind === "string") return { kind: "literal", value: token.value };
    if (token.kind === "field") return { kind: "field", name: token.name };
    if (token.kind === "word") {
      return this.take("(")
        ? { kind: "call", name: token.text, args: this.args() }
        : { kind: "field", name: token.text };
    }
    if (token.text === "-") return { kind: "negate", operand: this.operand() };
    if (token.text !== "(") throw new FormulaSyntaxError();
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

/** Parentheses around the left part change nothing, as operators are left-associative. */
function chain(left: FormulaNode, power: number, link: ChainStep): FormulaNode {
  if (left.kind !== "chain" || left.power !== power)
    return { kind: "chain", power, first: left, rest: [link] };
  left.rest.push(link);
  return left;
}
