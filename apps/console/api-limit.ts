/**
 * Rate limits of the management API: per client network, which limits clients that guess tokens or hold many, and per
 * token. Each console counts on its own. A call over a limit is refused before anything else is done for it.
 *
 * Only valid tokens are counted, so that made-up ones use no counter.
 */
import { createHash } from "node:crypto";
import type { Config } from "../../core/config";
import { BasetideError } from "../../core/errors";
import { clientAddress, networkOf, pathOf, RateWindow } from "../../core/http";
import { MINUTE_MS } from "../../core/time-units";
import { REVOKE_PATH, TOKEN_PATH } from "./auth/oauth";
import { MCP_PATH } from "./mcp/path";

/** One network can be an office or a build farm, so its limit is that of several tokens. */
const TOKENS_PER_NETWORK = 4;

/** What programs call outside of the management API. */
const OTHERS: ReadonlySet<string> = new Set([MCP_PATH, TOKEN_PATH, REVOKE_PATH]);

/** Counts the call of each request whose token turns out to be valid. */
const calls = new WeakMap<Request, () => number>();

/** @returns a function that throws BasetideError `rate_limited` for a call over a limit */
export function apiLimit(config: Pick<Config, "apiRequestsPerMinute" | "clientIpHeader">) {
  const byToken = new RateWindow(config.apiRequestsPerMinute, MINUTE_MS);
  const byNetwork = new RateWindow(config.apiRequestsPerMinute * TOKENS_PER_NETWORK, MINUTE_MS);
  return (request: Request): void => {
    const path = pathOf(request);
    if (!path.startsWith("/api/") && !OTHERS.has(path)) return;
    const address = clientAddress(request, config.clientIpHeader);
    if (address !== null) refuse(byNetwork.take(networkOf(address)));
    const header = request.headers.get("authorization");
    if (header === null) return;
    const token = createHash("sha256").update(header).digest("base64");
    refuse(byToken.waitMs(token));
    calls.set(request, () => byToken.take(token));
  };
}

/** Counts a call, once its token was found to be valid. @throws BasetideError `rate_limited` */
export function countCall(request: Request): void {
  refuse(calls.get(request)?.() ?? 0);
}

/** @param waitMs 0: within the limit. @throws BasetideError `rate_limited` */
export function refuse(waitMs: number, what = "calls"): void {
  if (waitMs === 0) return;
  const retryAfterSeconds = Math.ceil(waitMs / 1000);
  throw new BasetideError("rate_limited", `Too many ${what}. Retry in ${retryAfterSeconds} s`, {
    details: { retryAfterSeconds },
  });
}
