/**
 * Times that processes exchange are on the clock of the control plane's server, because clocks of machines may differ.
 * They are written and read as elapsed time.
 */
import type { TransactionSql } from "postgres";
import type { Db } from "../context";

/** A row whose times the server has set. */
interface Dated {
  /** How far the server's clock is behind this process's, ms. */
  clockAheadMs: number;
}

/** Returns the current time by the server that dated the base. */
export function serverNow({ clockAheadMs }: Dated): Date {
  return new Date(Date.now() - clockAheadMs);
}

/** Returns how long ago a time of the base was, ms, independent of this process's clock. */
export function agoMs(base: Dated, at: Date): number {
  return serverNow(base).getTime() - at.getTime();
}

/** Converts a time of this process's clock to the server's; the result is later by the latency of the statement. */
export function serverTime(db: Db | TransactionSql, at: Date) {
  return db`(statement_timestamp() - ${Date.now() - at.getTime()}::float8 * interval '1 ms')`;
}
