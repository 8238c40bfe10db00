/**
 * Finds the loops of a source file that may never end, in its syntax tree: loops without a condition, loops that await
 * until a condition changes, and timers that repeat.
 */
import { parseSync } from "rolldown/utils";

interface Node {
  type: string;
  [key: string]: unknown;
}

/** Returns the names of the functions around these loops, `Class.method` for methods; one entry for each loop. */
export function findWaits(path: string, text: string): string[] {
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]!.message}`);
  const found: string[] = [];
  visit(program as unknown as Node, []);
  return found;

  /** @param names the named functions and classes around the node */
  function visit(node: Node, names: string[]): void {
    const within = [...names, ...nameOf(node)];
    if (isEndless(node) || isRepeatingTimer(node, within)) found.push(within.join(".") || "(module)");
    for (const child of childrenOf(node)) visit(child, within);
  }
}

function isEndless(node: Node): boolean {
  if (node.type === "ForStatement") return node.test === null;
  if (node.type !== "WhileStatement" && node.type !== "DoWhileStatement") return false;
  const { test } = node as { test?: Node };
  return (test?.type === "Literal" && test.value === true) || hasAwait(node);
}

/** An interval, or a timer that calls the function that starts it. */
function isRepeatingTimer(node: Node, names: string[]): boolean {
  if (node.type !== "CallExpression") return false;
  const called = calledName(node);
  if (called === "setInterval") return true;
  if (called !== "setTimeout") return false;
  const [callback] = node.arguments as Node[];
  return callback !== undefined && names.some((name) => mentionsCall(callback, name));
}

/** Whether the code calls, or is, a function of this name. */
function mentionsCall(node: Node, name: string): boolean {
  if (referredName(node) === name) return true;
  return childrenOf(node).some((child) => mentionsCall(child, name));
}

function hasAwait(node: Node): boolean {
  if (node.type === "AwaitExpression") return true;
  return childrenOf(node).some((child) => !isFunction(child) && hasAwait(child));
}

function isFunction({ type }: Node): boolean {
  return (
    type === "FunctionDeclaration" || type === "FunctionExpression" || type === "ArrowFunctionExpression"
  );
}

function nameOf(node: Node): string[] {
  const { id, key, init } = node as { id?: Node; key?: Node; init?: Node };
  if (node.type === "FunctionDeclaration" || node.type === "ClassDeclaration")
    return id ? [id.name as string] : [];
  if (node.type === "MethodDefinition" || node.type === "Property")
    return key ? [referredName(key) ?? ""].filter(Boolean) : [];
  if (node.type === "VariableDeclarator" && init && isFunction(init))
    return [referredName(id!) ?? ""].filter(Boolean);
  return [];
}

function calledName(node: Node): string | undefined {
  return referredName(node.callee as Node);
}

function referredName(node: Node): string | undefined {
  if (node.type === "Identifier") return node.name as string;
  if (node.type === "PrivateIdentifier") return `#${node.name as string}`;
  return node.type === "MemberExpression" ? referredName(node.property as Node) : undefined;
}

function childrenOf(node: Node): Node[] {
  return Object.values(node)
    .flat()
    .filter((value): value is Node => typeof value === "object" && value !== null && "type" in value);
}
