/**
 * Times that processes tell one another are those of the control plane's server: that two clocks agree is nobody's
 * promise. They are written by how long ago they were, and read so.
 */
import type { TransactionSql } from "postgres";
import type { Db } from "../context";

/** Something whose times the server has dated. */
export interface Dated {
  /** By how much the server's clock is behind this process's, ms. */
  clockAheadMs: number;
}

/** What time it is by the server that dated the base. */
export function serverNow({ clockAheadMs }: Dated): Date {
  return new Date(Date.now() - clockAheadMs);
}

/** How long ago a time of the base was, ms, whatever this process's clock says. */
export function agoMs(base: Dated, at: Date): number {
  return serverNow(base).getTime() - at.getTime();
}

/** A time of this process's clock as the server has it, later by what the statement is on its way. */
export function serverTime(db: Db | TransactionSql, at: Date) {
  return db`(statement_timestamp() - ${Date.now() - at.getTime()}::float8 * interval '1 ms')`;
}
