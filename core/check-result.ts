/** The result of checking one thing: of doctor, of a server or database, and of the step that connects a base. */

export interface CheckResult {
  /** `warning`: works all the same. */
  severity: "ok" | "warning" | "problem";
  /** What was found. */
  message: string;
  /** What to do about it, or what `fix` does; undefined where nothing can be done, or the message says it. */
  remedy?: string | undefined;
  /** Repairs it. */
  fix?: (() => Promise<void>) | undefined;
}

export function isProblem({ severity }: CheckResult): boolean {
  return severity === "problem";
}
