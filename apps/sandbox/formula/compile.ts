/**
 * Compiles a formula's text to closures, one for each part, so that a filter over many records is parsed once.
 */
import { type FormulaNode, FormulaSyntaxError, parseFormula } from "../../../core/formula";
import { type Compiled, type Evaluator, functions } from "./functions";
import { negate, operations } from "./operators";
import { recordIdsIn } from "./record-ids";
import type { CompiledFormula, FieldResolver, FormulaValue, RowContext } from "./types";
import { isTruthy } from "./values";

/**
 * Compiles a formula. Names of functions are case-insensitive; those of fields are as `resolve` defines.
 *
 * @throws FormulaSyntaxError with the tail of the API's message: the text cannot be parsed or a function has the wrong
 *   number of arguments; else the unknown fields, else the unknown functions, in lower case
 */
export function compileFormula(text: string, resolve: FieldResolver): CompiledFormula {
  const tree = parseFormula(text);
  const compiler = new Compiler(resolve);
  const { run } = compiler.compile(tree);
  compiler.refuseUnknownNames();
  return {
    referencedFieldIds: [...compiler.fieldIds],
    recordIds: recordIdsIn(tree),
    evaluate: run,
    isTrue: (row) => isTruthy(run(row)),
  };
}

/** Constants are computed without a record; they never read it. */
const NO_ROW: RowContext = {
  recordId: "",
  createdTime: 0,
  lastModifiedTime: () => null,
  cell: () => null,
  now: () => 0,
};

/** Stands for what cannot be compiled until its name is reported. It is valid wherever a field is. */
const UNKNOWN: Compiled = { run: () => null, fieldId: "" };

class Compiler {
  readonly fieldIds = new Set<string>();
  private readonly unknownFields = new Set<string>();
  private readonly unknownFunctions = new Set<string>();

  constructor(private readonly resolve: FieldResolver) {}

  compile(node: FormulaNode): Compiled {
    switch (node.kind) {
      case "literal":
        return constant(node.value);
      case "field":
        return this.field(node.name);
      case "call":
        return this.call(node.name, node.args);
      case "negate": {
        const operand = this.compile(node.operand);
        return folded([operand], (row) => negate(operand.run(row)));
      }
      case "chain":
        return this.chain(node);
    }
  }

  refuseUnknownNames(): void {
    refuse("Unknown field names", this.unknownFields);
    refuse("Unknown function names", this.unknownFunctions);
  }

  private field(name: string): Compiled {
    const fieldId = this.resolve(name);
    if (fieldId === undefined) {
      this.unknownFields.add(name.toLowerCase());
      return UNKNOWN;
    }
    this.fieldIds.add(fieldId);
    return {
      fieldId,
      run(row) {
        const cell = row.cell(fieldId);
        return typeof cell === "boolean" ? Number(cell) : cell;
      },
    };
  }

  private call(name: string, argNodes: FormulaNode[]): Compiled {
    const spec = functions.get(name.toUpperCase());
    const args = argNodes.map((arg) => this.compile(arg));
    if (spec === undefined) {
      this.unknownFunctions.add(name.toLowerCase());
      return UNKNOWN;
    }
    if (args.length < spec.minArgs || args.length > spec.maxArgs) throw new FormulaSyntaxError();
    const run = spec.compile(args);
    return spec.readsRow ? { run } : folded(args, run);
  }

  /** A loop over the steps instead of nested closures: a chain may have thousands. */
  private chain(node: FormulaNode & { kind: "chain" }): Compiled {
    const first = this.compile(node.first);
    const steps = node.rest.map(({ operator, right }) => ({
      apply: operations[operator],
      right: this.compile(right),
    }));
    const parts = [first, ...steps.map((step) => step.right)];
    const [only] = steps;
    if (steps.length === 1 && only !== undefined) {
      const { apply, right } = only;
      return folded(parts, (row) => apply(first.run(row), right.run(row)));
    }
    return folded(parts, (row) => {
      let value = first.run(row);
      for (const { apply, right } of steps) value = apply(value, right.run(row));
      return value;
    });
  }
}

function constant(value: FormulaValue): Compiled {
  return { constant: value, run: () => value };
}

/** `run`, computed now if all its parts are constant. */
function folded(parts: readonly Compiled[], run: Evaluator): Compiled {
  return parts.every((part) => part.constant !== undefined) ? constant(run(NO_ROW)) : { run };
}

function refuse(what: string, names: Set<string>): void {
  if (names.size > 0) throw new FormulaSyntaxError(`${what}: ${[...names].join(", ")}`);
}
