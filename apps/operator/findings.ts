/** What `doctor` finds: something that is well, or what is wrong, what to do, and, where a program can, the doing. */
import { isBasetideError } from "../../core/errors";

/** Looked at at once. */
const PARALLEL = 8;

export interface Finding {
  check:
    | "control_plane"
    | "migrations"
    | "secrets"
    | "cluster"
    | "replica"
    | "orphan"
    | "quarantine"
    | "base";
  /** `mended`: it was wrong, and `doctor --fix` has put it right. */
  status: "ok" | "warning" | "problem" | "mended";
  message: string;
  remedy: string | null;
}

/** A finding that `doctor --fix` can put right. */
export interface Mendable extends Finding {
  mend?: () => Promise<void>;
}

export function ok(check: Finding["check"], message: string): Finding {
  return { check, status: "ok", message, remedy: null };
}

export function warning(check: Finding["check"], message: string, remedy: string): Finding {
  return { check, status: "warning", message, remedy };
}

export function problem(check: Finding["check"], message: string, remedy: string): Finding {
  return { check, status: "problem", message, remedy };
}

/** Null for a secret that cannot be read: that is a finding of its own already. */
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
