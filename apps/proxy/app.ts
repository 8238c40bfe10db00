/** The proxy as an app: forwards `/{upstream_host}/v0/…` and `/v0/…`, and serves the health routes. */
import { RateWindow } from "../../core/http";
import { healthAnswers } from "../../core/http/service";
import { AcceptedKeys, ownKeys, UnprovenQueue } from "../../core/keys";
import { requireWritable } from "../../core/postgres";
import { type WritesContext, WriteThrough } from "../../core/proxy";
import { bodyBudgets, connectionBudgets } from "./budgets";
import { WriteCoalescer } from "./coalesce";
import type { ProxyContext } from "./context";
import { forward } from "./forward";
import { proxyMetrics } from "./metrics";
import { failed } from "./own-answers";

/** Never an upstream's host: those contain a dot. */
const HEALTH_PATH = /^\/(?:healthz|readyz|metrics)(?:[?#]|$)/;

/** Per network: a browser sends a preflight before each call, and caches some. */
const PREFLIGHTS_PER_MINUTE = 600;

export interface ProxyApp {
  app: { fetch(request: Request): Response | Promise<Response> };
  /** The hosts that a request without a host in its path may be sent to; a listener adds its own names. */
  ownHosts: Set<string>;
  /** The answer to a read if the source's answer broke off before any of it was passed on. */
  brokenOff(): Response;
  /** Finishes the writes under way, and closes what they use. */
  close(): Promise<void>;
}

export function proxyApp(ctx: WritesContext): ProxyApp {
  const writes = new WriteThrough(ctx);
  const keys = new AcceptedKeys(ctx);
  const ownHosts = new Set([new URL(ctx.config.proxyUrl).host]);
  const context: ProxyContext = {
    ...ctx,
    writes,
    proxyMetrics: proxyMetrics(ctx.metrics),
    keys,
    isOwnKey: ownKeys(ctx, keys.hash),
    unproven: new UnprovenQueue(),
    coalescer: new WriteCoalescer(),
    bodies: bodyBudgets(),
    connections: connectionBudgets(),
    preflights: new RateWindow(PREFLIGHTS_PER_MINUTE, 60_000),
    ownHosts,
    underWay: new Set(),
  };
  const answers = healthAnswers({
    config: ctx.config,
    publicUrl: ctx.config.proxyUrl,
    metrics: ctx.metrics,
    ready: () => requireWritable(ctx.db),
  });
  return {
    app: { fetch: (request) => (isHealth(request.url) ? answers(request) : forward(context, request)) },
    ownHosts,
    brokenOff: () => failed(context.proxyMetrics, "unreachable"),
    async close() {
      await Promise.allSettled(context.underWay);
      await writes.close();
      await keys.close();
    },
  };
}

function isHealth(url: string): boolean {
  return HEALTH_PATH.test(url.slice(url.indexOf("/", url.indexOf("://") + 3)));
}
