/** The result of one check: of doctor, of a server or database, and of the step that connects a base. */

export interface CheckResult<Check extends string = string> {
  /** What was checked. */
  check: Check;
  /** `warning`: Basetide works all the same. */
  severity: "ok" | "warning" | "problem";
  /** The finding. */
  message: string;
  /** What to do about it, or what `fix` does; undefined if there is no remedy, or the message contains it. */
  remedy?: string | undefined;
  /** Repairs it. */
  fix?: (() => Promise<void>) | undefined;
}

export function isProblem({ severity }: CheckResult): boolean {
  return severity === "problem";
}

export function ok<Check extends string>(check: Check, message: string): CheckResult<Check> {
  return { check, severity: "ok", message };
}

export function warning<Check extends string>(
  check: Check,
  message: string,
  remedy?: string,
): CheckResult<Check> {
  return { check, severity: "warning", message, remedy };
}

export function problem<Check extends string>(
  check: Check,
  message: string,
  remedy?: string,
): CheckResult<Check> {
  return { check, severity: "problem", message, remedy };
}
