/** The result of one check: of doctor, of a server or database, and of the step that connects a base. */

export interface CheckResult {
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
