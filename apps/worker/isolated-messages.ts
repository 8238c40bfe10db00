/** The messages between a worker and its child process. */
import type { Config } from "../../core/config";
import type { ErrorCode } from "../../core/errors";

export type ToChild =
  | { type: "start"; config: Config }
  | { type: "lease"; baseId: string }
  | { type: "stop"; baseId: string }
  | { type: "kill" }
  | { type: "ping" };

export type FromChild =
  | { type: "ready" }
  /** `next`: as `holdLease` returns it. */
  | { type: "ended"; baseId: string; next: number | null }
  | { type: "failed"; baseId: string; code: ErrorCode; message: string }
  | { type: "pong"; rssBytes: number };
