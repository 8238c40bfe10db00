/** The proxy as an app: `/{upstream_host}/v0/…` is forwarded, and the health routes stand beside it. */
import { Elysia } from "elysia";
import { healthRoutes } from "../../core/http/health";
import { type WritesContext, WriteThrough } from "../../core/writes";
import type { ProxyContext } from "./context";
import { forward } from "./forward";
import { proxyMetrics } from "./metrics";
import { failed } from "./own-answers";
import { ProvenKeys } from "./replica-read";

/** No upstream's host: those have a dot. */
const HEALTH_PATH = /^\/(?:healthz|readyz|metrics)(?:[?#]|$)/;

export interface ProxyApp {
  app: Pick<Elysia, "fetch" | "handle">;
  /** The answer to a read whose own answer broke off before any of it was given on. */
  brokenOff(): Response;
  /** Finishes the writes under way, and closes what they use. */
  close(): Promise<void>;
}

export function proxyApp(ctx: WritesContext): ProxyApp {
  const writes = new WriteThrough(ctx);
  const context: ProxyContext = {
    ...ctx,
    writes,
    proxyMetrics: proxyMetrics(ctx.metrics),
    provenKeys: new ProvenKeys(),
    underWay: new Set(),
  };
  const app = new Elysia({ name: "proxy" })
    // Before routing: a forwarded request is none of Elysia's business, least of all its path and its body.
    .onRequest(({ request }) => (isHealth(request.url) ? undefined : forward(context, request)))
    .use(healthRoutes({ metrics: ctx.metrics, ready: async () => void (await ctx.db`select 1`) }));
  return {
    app,
    brokenOff: () => failed(context.proxyMetrics, "unreachable"),
    async close() {
      await Promise.allSettled(context.underWay);
      await writes.close();
    },
  };
}

function isHealth(url: string): boolean {
  return HEALTH_PATH.test(url.slice(url.indexOf("/", url.indexOf("://") + 3)));
}
