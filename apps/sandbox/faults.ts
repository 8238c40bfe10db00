/**
 * Configured faults: which requests fail, how, and how often.
 *
 * Each request is matched once, in the order in which the faults were added. The first match is applied and uses up one
 * of its counts.
 */
import { ControlError } from "./errors";
import { Random } from "./random";

export const FAULT_KINDS = [
  "status_500",
  "status_502_html",
  "status_503",
  "rate_limited",
  "rate_limited_object",
  "billing_limit",
  "unauthorized",
  "forbidden",
  "not_found",
  "iterator_lost",
  "broken_json",
  "html_200",
  "truncated",
  "slow_body",
  "hang",
  "reset",
  "empty_list",
  "repeat_page",
  "endless_list",
  "endless_body",
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

/** Kinds that concern the records of a list: they match only list requests. */
const LIST_KINDS = new Set<FaultKind>(["iterator_lost", "empty_list", "repeat_page", "endless_list"]);

export interface FaultOptions {
  kind: FaultKind;
  base?: string;
  /** Table id or name, as in the path. */
  table?: string;
  method?: string;
  /** A regular expression over path and query as received, and over the body of a list by POST. */
  path?: string;
  /** How many requests it affects; all matching ones if absent. */
  count?: number;
  /** Lets this many matching requests pass first. */
  after?: number;
  durationMs?: number;
  probability?: number;
  seed?: number;
  /**
   * For kinds that replace the answer: `before` the request has any effect (default), or `after` it was carried out, so
   * that a write happens but its answer is lost.
   */
  when?: "before" | "after";
  /** For `slow_body`: the pause between pieces of the body; for `hang`: how long until the answer is sent after all. */
  delayMs?: number;
}

export interface Fault extends FaultOptions {
  id: number;
  /** Requests affected so far. */
  played: number;
}

interface Armed extends Fault {
  pattern: RegExp | undefined;
  random: Random;
  skipped: number;
  untilMs: number;
}

interface FaultTarget {
  method: string;
  path: string;
  baseId?: string | undefined;
  table?: string | undefined;
  isList: boolean;
}

export class Faults {
  #armed: Armed[] = [];
  #nextId = 1;

  /** @throws ControlError for an unknown kind or a pattern that is not a regular expression */
  add(options: FaultOptions): Fault {
    if (!FAULT_KINDS.includes(options.kind))
      throw new ControlError(`There is no fault "${options.kind}". Use one of: ${FAULT_KINDS.join(", ")}.`);
    const armed: Armed = {
      ...options,
      id: this.#nextId++,
      played: 0,
      skipped: 0,
      pattern: options.path === undefined ? undefined : compilePattern(options.path),
      random: new Random(options.seed ?? 1),
      untilMs:
        options.durationMs === undefined ? Number.POSITIVE_INFINITY : performance.now() + options.durationMs,
    };
    this.#armed.push(armed);
    return describe(armed);
  }

  /** Returns the fault to apply to a request, if any. */
  next(target: FaultTarget): Fault | undefined {
    if (this.#armed.length === 0) return undefined;
    return this.#armed.find((fault) => matches(fault, target) && isDue(fault));
  }

  list(): Fault[] {
    return this.#armed.map(describe);
  }

  /** Ends one fault, or all. */
  clear(id?: number): void {
    this.#armed = id === undefined ? [] : this.#armed.filter((fault) => fault.id !== id);
  }
}

function matches(fault: Armed, target: FaultTarget): boolean {
  return (
    (fault.base === undefined || fault.base === target.baseId) &&
    (fault.table === undefined || fault.table === target.table) &&
    (fault.method === undefined || fault.method.toUpperCase() === target.method) &&
    (fault.pattern === undefined || fault.pattern.test(target.path)) &&
    (target.isList || !LIST_KINDS.has(fault.kind))
  );
}

/** Counts the match; returns whether the fault applies to it. */
function isDue(fault: Armed): boolean {
  if (fault.count !== undefined && fault.played >= fault.count) return false;
  if (performance.now() > fault.untilMs) return false;
  if (fault.probability !== undefined && !fault.random.chance(fault.probability)) return false;
  if (fault.skipped < (fault.after ?? 0)) {
    fault.skipped += 1;
    return false;
  }
  fault.played += 1;
  return true;
}

function describe(armed: Armed): Fault {
  const { pattern: _pattern, random: _random, skipped: _skipped, untilMs: _untilMs, ...fault } = armed;
  return fault;
}

function compilePattern(text: string): RegExp {
  try {
    return new RegExp(text);
  } catch {
    throw new ControlError(`"${text}" is not a regular expression.`);
  }
}
