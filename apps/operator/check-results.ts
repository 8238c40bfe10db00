/** The results of `doctor`. */
import type { CheckResult } from "../../core/check-result";
import { isBasetideError } from "../../core/errors";

/** Checked at the same time. */
const PARALLEL = 8;

export interface DoctorResult extends CheckResult {
  check:
    | "control_plane"
    | "migrations"
    | "secrets"
    | "cluster"
    | "replica"
    | "orphan"
    | "quarantine"
    | "base";
  /** It was a warning or a problem, and `doctor --fix` has repaired it. */
  isFixed?: boolean;
}

export function ok(check: DoctorResult["check"], message: string): DoctorResult {
  return { check, severity: "ok", message };
}

export function warning(check: DoctorResult["check"], message: string, remedy: string): DoctorResult {
  return { check, severity: "warning", message, remedy };
}

export function problem(check: DoctorResult["check"], message: string, remedy: string): DoctorResult {
  return { check, severity: "problem", message, remedy };
}

/** Null for a secret that cannot be read: the check of secrets reports that already. */
export async function readable<T>(open: () => Promise<T>): Promise<T | null> {
  try {
    return await open();
  } catch (error) {
    if (isBasetideError(error, "secret_unreadable")) return null;
    throw error;
  }
}

export async function inBatches<T, R>(items: T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let start = 0; start < items.length; start += PARALLEL) {
    results.push(...(await Promise.all(items.slice(start, start + PARALLEL).map(work))));
  }
  return results;
}
