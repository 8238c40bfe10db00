/** Parses the source's formulas to trees, as far as their meaning is known: other texts are left to the source. */

/** Thrown for a formula, or a part of one, that only the source can evaluate. */
export class Untranslatable extends Error {}

export type FormulaOperator = "=" | "!=" | "<" | "<=" | ">" | ">=";

export type FormulaTree =
  | { kind: "field"; name: string }
  | { kind: "text"; value: string }
  | { kind: "number"; value: number }
  | { kind: "call"; name: string; args: FormulaTree[] }
  | { kind: "join"; parts: FormulaTree[] }
  | { kind: "compare"; left: FormulaTree; operator: FormulaOperator; right: FormulaTree };

const TOKEN =
  /\s*(?:(\{(?:[^{}\\]|\\.)*\})|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(\d+(?:\.\d+)?)|([A-Za-z_]\w*)|(!=|<=|>=|[=<>(),&-]))/y;
const LONGEST = 10_000;
const OPERATORS = new Set<string>(["=", "!=", "<", "<=", ">", ">="]);

interface Token {
  kind: "field" | "text" | "number" | "word" | "sign";
  text: string;
}

/** @throws Untranslatable; RangeError if the nesting exhausts the stack */
export function parseFormula(formula: string): FormulaTree {
  if (formula.length > LONGEST) throw new Untranslatable();
  return new Parser(tokens(formula)).whole();
}

function tokens(formula: string): Token[] {
  const found: Token[] = [];
  const kinds = ["field", "text", "number", "word", "sign"] as const;
  TOKEN.lastIndex = 0;
  const end = formula.trimEnd().length;
  while (TOKEN.lastIndex < end) {
    const match = TOKEN.exec(formula);
    if (!match) throw new Untranslatable();
    const index = match.slice(1).findIndex((part) => part !== undefined);
    found.push({ kind: kinds[index]!, text: match[index + 1]! });
  }
  return found;
}

class Parser {
  readonly #tokens: Token[];
  #at = 0;

  constructor(all: Token[]) {
    this.#tokens = all;
  }

  whole(): FormulaTree {
    const node = this.#expression();
    if (this.#at < this.#tokens.length) throw new Untranslatable();
    return node;
  }

  #expression(): FormulaTree {
    const left = this.#joined();
    const next = this.#peek();
    if (!isOperator(next)) return left;
    this.#at++;
    const right = this.#joined();
    // `a = b = c` is left to the source.
    if (isOperator(this.#peek())) throw new Untranslatable();
    return { kind: "compare", left, operator: next, right };
  }

  /** `&` binds closer than comparisons. */
  #joined(): FormulaTree {
    const parts = [this.#operand()];
    while (this.#peek() === "&") {
      this.#at++;
      parts.push(this.#operand());
    }
    return parts.length === 1 ? parts[0]! : { kind: "join", parts };
  }

  #operand(): FormulaTree {
    const token = this.#tokens[this.#at++];
    if (!token) throw new Untranslatable();
    switch (token.kind) {
      case "field":
        return { kind: "field", name: unescaped(token.text.slice(1, -1)) };
      case "text":
        return { kind: "text", value: unescaped(token.text.slice(1, -1)) };
      case "number":
        return { kind: "number", value: Number(token.text) };
      case "word":
        if (this.#peek() !== "(") return { kind: "field", name: token.text };
        return { kind: "call", name: token.text.toUpperCase(), args: this.#args() };
      case "sign":
        return this.#sign(token.text);
    }
  }

  #sign(sign: string): FormulaTree {
    if (sign === "-" && this.#tokens[this.#at]?.kind === "number") {
      return { kind: "number", value: -Number(this.#tokens[this.#at++]!.text) };
    }
    if (sign !== "(") throw new Untranslatable();
    const inner = this.#expression();
    this.#expect(")");
    return inner;
  }

  #args(): FormulaTree[] {
    this.#expect("(");
    const args: FormulaTree[] = [];
    if (this.#peek() !== ")") {
      args.push(this.#expression());
      while (this.#peek() === ",") {
        this.#at++;
        args.push(this.#expression());
      }
    }
    this.#expect(")");
    return args;
  }

  /** The next sign, or undefined. */
  #peek(): string | undefined {
    const token = this.#tokens[this.#at];
    return token?.kind === "sign" ? token.text : undefined;
  }

  #expect(sign: string): void {
    if (this.#peek() !== sign) throw new Untranslatable();
    this.#at++;
  }
}

function isOperator(text: string | undefined): text is FormulaOperator {
  return text !== undefined && OPERATORS.has(text);
}

/** Unescapes `\'`, `\"`, `\\`, `\{`, `\}`; the meaning of other escapes is unknown. */
function unescaped(text: string): string {
  return text.replace(/\\(.)/gs, (_, escaped: string) => {
    if (!`'"\\{}`.includes(escaped)) throw new Untranslatable();
    return escaped;
  });
}
