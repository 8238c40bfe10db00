/** Starts the proxy: its rate limiter, its queue, its listener. */
import http from "node:http";
import { hostname } from "node:os";
import type { Context } from "../../core/context";
import { startReports } from "../../core/control/fleet";
import { type ListenOptions, listen } from "../../core/http";
import { createProcessLimiter } from "../../core/limiter";
import { type OpenQueue, openQueue } from "../../core/queue";
import { platforms } from "../../core/source";
import { type ProxyApp, proxyApp } from "./app";
import { startChangeSets } from "./change-sets/runner";
import { startConnect } from "./connect";
import { ownAnswer } from "./own-answers";
import { startOutboxes } from "./sql-writes/outboxes";
import { startSqlWrites } from "./sql-writes/start";

/** Clients may send URLs of 16,000 characters after our own address, plus headers. */
const MAX_HEADER_BYTES = 64 * 1024;

const LOOPBACK_NAMES = ["localhost", "127.0.0.1", "[::1]"];

export interface RunningProxy {
  port: number;
  /** The port for CONNECT requests; absent: none. */
  connectPort?: number | undefined;
  /** The port for SQL writes; absent: none. */
  writePort?: number | undefined;
  stop(): Promise<void>;
}

/**
 * @param options.port 0 takes any free one; PROXY_PORT unless given
 * @throws BasetideError `port_taken`, `control_unavailable`
 */
export async function startProxy(ctx: Context, options: { port?: number } = {}): Promise<RunningProxy> {
  const queue = queueOf(ctx);
  const port = options.port ?? ctx.config.proxyPort;
  const limiter = createProcessLimiter(ctx, { instanceId: nameOf(port) });
  const proxy = proxyApp({ ...ctx, limiter, platforms: platforms(ctx.config), queue });
  await using releases = new AsyncDisposableStack();
  releases.defer(async () => {
    await proxy.close();
    await limiter.close();
    await queue.close();
  });
  // We serve plain HTTP, so a reverse proxy must terminate TLS.
  if (ctx.config.proxyUrl?.startsWith("https:") && ctx.config.clientIpHeader === undefined)
    ctx.log.warn(
      "PROXY_URL is https and CLIENT_IP_HEADER is not set: per-address limits treat all clients as one",
    );
  const open = (
    options: Pick<ListenOptions, "port" | "host" | "tls" | "addressOf">,
    app: Pick<App, "fetch"> = proxy.app,
  ) =>
    listen(app, {
      portVariable: "PROXY_PORT",
      // The proxy enforces the limit itself and explains it; Bun would only close the connection.
      maxBodyBytes: Number.MAX_SAFE_INTEGER,
      answerFault: proxy.brokenOff,
      answerMalformed: (message) => ownAnswer("PROXY_REQUEST_MALFORMED", { told: message }),
      publicUrl: ctx.config.proxyUrl,
      log: ctx.log,
      ...options,
    });
  // Bun.serve uses this value; its type is read-only, but Bun's documentation says that it can be set.
  Object.assign(http, { maxHeaderSize: MAX_HEADER_BYTES });
  const listener = open({ port, host: ctx.config.host });
  releases.defer(() => listener.stop());
  for (const name of LOOPBACK_NAMES) proxy.ownHosts.add(`${name}:${listener.port}`);
  const connect = await startConnect(ctx, (options) =>
    open({ port: 0, host: "127.0.0.1", ...options }, withoutHeader(proxy.app, ctx.config.clientIpHeader)),
  );
  releases.defer(async () => connect?.stop());
  const changeSets = startChangeSets(ctx, proxy.app.fetch);
  releases.defer(() => changeSets.stop());
  const reports = startReports(ctx.db, "proxy");
  releases.defer(() => reports.stop());
  const outboxes = startOutboxes(ctx, reports.id);
  releases.defer(() => outboxes.stop());
  const sqlWrites = await startSqlWrites(ctx, proxy.app.fetch);
  releases.defer(async () => sqlWrites?.stop());
  const whileRunning = releases.move();
  return {
    port: listener.port,
    connectPort: connect?.port,
    writePort: sqlWrites?.port,
    stop: () => whileRunning.disposeAsync(),
  };
}

/** The queue of a proxy, which is opened when it first requests a sync: few do. */
function queueOf(ctx: Context) {
  let opened: Promise<OpenQueue> | undefined;
  const open = () => {
    opened ??= openQueue(ctx, ctx.config.databaseUrl!, { isWorker: false }).catch((error: unknown) => {
      opened = undefined;
      throw error;
    });
    return opened;
  };
  return {
    async requestSync(baseId: string): Promise<void> {
      await (await open()).requestSync(baseId);
    },
    async close(): Promise<void> {
      const queue = await opened?.catch(() => undefined);
      await queue?.close();
    },
  };
}

type App = ProxyApp["app"];

/**
 * The proxy without a reverse proxy in front: the header that normally names the client would be set by the client
 * itself.
 */
function withoutHeader(app: App, header: string | undefined): Pick<App, "fetch"> {
  return {
    fetch(request) {
      if (header !== undefined) request.headers.delete(header);
      return app.fetch(request);
    },
  };
}

/** The identity of a proxy, shared by its replacement after a crash: its machine or container, and its port. */
function nameOf(port: number): string {
  return `${hostname()}:${port || crypto.randomUUID()}`;
}
