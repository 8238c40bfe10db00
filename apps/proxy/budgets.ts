/**
 * What the clients of a proxy share: memory for the bodies of their requests, and connections to the source.
 *
 * Most of each is reserved for keys that the source has accepted for a connected base. All others, among them keys of
 * bases that no account has connected, share the rest.
 */
import { MB } from "../../core/byte-units";
import { type BudgetShare, clientNetwork, SharedBudget } from "../../core/http";
import { MAX_REQUEST_BYTES } from "./body";
import type { Caller } from "./caller";
import type { ProxyContext } from "./context";
import type { ProxyTarget } from "./target";

type ProvenKind = "key" | "base" | "account";
type UnprovenKind = "key" | "base";

export interface Budgets {
  proven: SharedBudget<ProvenKind>;
  unproven: SharedBudget<UnprovenKind>;
}

/** The bytes of all bodies that a process buffers. */
export function bodyBudgets(): Budgets {
  return {
    proven: new SharedBudget({
      most: 192 * MB,
      mostPer: { key: 32 * MB, base: 48 * MB, account: 64 * MB, network: 48 * MB },
    }),
    // A request of the largest size must be possible.
    unproven: new SharedBudget({
      most: 64 * MB,
      mostPer: { key: MAX_REQUEST_BYTES, base: 32 * MB, network: MAX_REQUEST_BYTES },
    }),
  };
}

/** Requests that hold a connection to the source for long; together fewer than there are. */
export function connectionBudgets(): Budgets {
  return {
    proven: new SharedBudget({ most: 1500, mostPer: { key: 100, base: 200, account: 750, network: 750 } }),
    unproven: new SharedBudget({ most: 400, mostPer: { key: 50, base: 100, network: 50 } }),
  };
}

/** Whom a request's part of a budget belongs to. */
export type Owners =
  | { isProven: true; of: Record<ProvenKind | "network", string> }
  | { isProven: false; of: Record<UnprovenKind | "network", string> };

/** @param caller undefined for a request that names no base */
export function ownersOf(
  ctx: Pick<ProxyContext, "config" | "keys">,
  request: Request,
  { baseId }: ProxyTarget,
  caller: Caller | undefined,
): Owners {
  const key = caller?.keyHash ?? ctx.keys.hash("", request.headers.get("authorization") ?? "");
  const network = clientNetwork(request, ctx.config.clientIpHeader, key);
  if (!caller?.isProven || caller.quotaKey === undefined)
    return { isProven: false, of: { key, base: baseId ?? key, network } };
  const base = caller.quotaKey;
  const accounts = [...new Set(caller.found.bases.map(({ accountId }) => accountId))].sort().join(" ");
  return { isProven: true, of: { key, base, account: accounts || base, network } };
}

export function openShare(budgets: Budgets, owners: Owners, giveWay?: () => void): BudgetShare {
  return owners.isProven
    ? budgets.proven.open(owners.of, { giveWay })
    : budgets.unproven.open(owners.of, { giveWay });
}
