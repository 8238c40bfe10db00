/** The results of `doctor`. */
import type { CheckResult } from "../../core/check-result";
import { isBasetideError } from "../../core/errors";

/** How many checks run at the same time. */
const PARALLEL = 8;

type Checked =
  | "control_plane"
  | "migrations"
  | "secrets"
  | "cluster"
  | "replica"
  | "orphan"
  | "quarantine"
  | "base"
  | "workers"
  | "versions"
  | "backup"
  | "mail"
  | "address"
  | "disk";

export interface DoctorResult extends CheckResult<Checked> {
  /** `doctor --fix` has repaired what was a warning or a problem. */
  isFixed?: boolean;
}

/** Returns null for a secret that cannot be decrypted: the check of secrets already reports that. */
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
