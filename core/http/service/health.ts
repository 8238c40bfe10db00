/** The addresses that every process serves for its operators: `/healthz`, `/readyz`, `/metrics`. */
import type { Registry } from "prom-client";
import { SharedLookup, withTimeout } from "../../async";
import type { Config } from "../../config";
import { asControlError } from "../../postgres";
import { isFromThisMachine, isLoopbackUrl, pathOf } from "..";
import { answerMetrics, noMetrics } from "./metrics";

/** A dependency that does not answer within this time counts as unreachable. */
const READY_TIMEOUT_MS = 3_000;

/**
 * - `/healthz`: 200 while the process answers at all; without an answer, restart the process.
 * - `/readyz`: 200 if `ready` resolves, else 503; after a 503, send no traffic here.
 * - `/metrics`: Prometheus text for requests from this machine; 404 for all others, and if METRICS_PORT serves it.
 *
 * @param parts.publicUrl where clients reach the process. If that is not this machine itself, requests come through a
 *   reverse proxy that may look like a local client, and `/metrics` is on METRICS_PORT only
 */
export function healthAnswers(parts: {
  config: Pick<Config, "metricsPort" | "clientIpHeader">;
  publicUrl?: string;
  metrics: Registry;
  ready: () => Promise<void>;
}): (request: Request) => Promise<Response> {
  const { metricsPort, clientIpHeader } = parts.config;
  const isPublic = parts.publicUrl !== undefined && !isLoopbackUrl(parts.publicUrl);
  const isHidden = (request: Request) =>
    metricsPort !== undefined || isPublic || !isFromThisMachine(request, clientIpHeader);
  // Anyone can ask.
  const isReady = new SharedLookup(async () => {
    await parts.ready();
    return new Map();
  });
  return async (request) => {
    switch (pathOf(request)) {
      case "/healthz":
        return Response.json({ status: "ok" });
      case "/readyz":
        return readiness(() => isReady.get(""));
      case "/metrics":
        return isHidden(request) ? noMetrics() : answerMetrics([parts.metrics]);
      default:
        return Response.json(
          { error: { code: "not_found", message: "This address does not exist" } },
          { status: 404 },
        );
    }
  };
}

async function readiness(ready: () => Promise<unknown>): Promise<Response> {
  try {
    await withTimeout(READY_TIMEOUT_MS, "internal", ready());
    return Response.json({ status: "ready" });
  } catch (error) {
    return Response.json({ status: "not_ready", code: asControlError(error).code }, { status: 503 });
  }
}
