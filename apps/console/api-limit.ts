/**
 * Rate limits of the management API: per token, and per client network, which limits clients that guess tokens or hold
 * many. Each console counts on its own, before it does anything else for a request.
 */
import { createHash } from "node:crypto";
import type { Config } from "../../core/config";
import { BasetideError } from "../../core/errors";
import { clientAddress, networkOf, pathOf, RateWindow } from "../../core/http";

const WINDOW_MS = 60_000;
/** One network can be an office or a build farm, so its limit is that of several tokens. */
const TOKENS_PER_NETWORK = 4;

/** @returns a function that throws BasetideError `rate_limited` for a call over the limit */
export function apiLimit(config: Pick<Config, "apiRequestsPerMinute" | "clientIpHeader">) {
  const byToken = new RateWindow(config.apiRequestsPerMinute, WINDOW_MS);
  const byNetwork = new RateWindow(config.apiRequestsPerMinute * TOKENS_PER_NETWORK, WINDOW_MS);
  return (request: Request): void => {
    if (!pathOf(request).startsWith("/api/")) return;
    const address = clientAddress(request, config.clientIpHeader);
    const token = request.headers.get("authorization");
    const waitMs = Math.max(
      address === null ? 0 : byNetwork.take(networkOf(address)),
      token === null ? 0 : byToken.take(createHash("sha256").update(token).digest("base64")),
    );
    if (waitMs > 0) throw tooMany(waitMs);
  };
}

function tooMany(waitMs: number): BasetideError {
  const seconds = Math.ceil(waitMs / 1000);
  return new BasetideError("rate_limited", `Too many calls. Retry in ${seconds} s`, {
    details: { retryAfterSeconds: seconds },
  });
}
