/** A quota ledger that lets everything pass at once. */
import type { Ledger } from "../../core/limiter";

export function boundlessLedger(over: Partial<Ledger> = {}): Ledger {
  return {
    takeSync: async () => undefined,
    takeClient: async () => undefined,
    takeUnproven: async () => undefined,
    countServed: async () => {},
    block: async () => {},
    lift: async () => {},
    usage: async () => ({ month: "2026-01", sync: 0, client: 0 }),
    forget: async () => {},
    close: async () => {},
    ...over,
  };
}
