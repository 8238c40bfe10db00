/** Starts the proxy: its ledger, its queue, its listener. */
import http from "node:http";
import { hostname } from "node:os";
import type { Context } from "../../core/context";
import { listen } from "../../core/http/listen";
import { openQueue } from "../../core/queue";
import { createLedger } from "../../core/quota";
import { platforms } from "../../core/source";
import { proxyApp } from "./app";

/** Clients may send URLs of 16,000 characters behind our own address, and headers come on top. */
const MAX_HEADER_BYTES = 64 * 1024;
/** The longest that Bun takes, seconds: slow answers are the source's to give, and clients' to give up on. */
const IDLE_SECONDS = 255;

export interface RunningProxy {
  port: number;
  stop(): Promise<void>;
}

/**
 * @param options.port 0 takes any free one; PROXY_PORT unless given
 * @throws BasetideError `port_taken`, `control_unavailable`
 */
export async function startProxy(ctx: Context, options: { port?: number } = {}): Promise<RunningProxy> {
  const queue = await openQueue(ctx, ctx.config.databaseUrl!, { isWorker: false });
  const port = options.port ?? ctx.config.proxyPort;
  const ledger = createLedger(ctx, { standsInAs: nameOf(port) });
  const proxy = proxyApp({ ...ctx, ledger, platforms: platforms(ctx.config), queue });
  async function close(): Promise<void> {
    await proxy.close();
    await ledger.close();
    await queue.close();
  }
  try {
    // Bun.serve goes by it; its type says read-only, Bun's documentation says that it can be set.
    Object.assign(http, { maxHeaderSize: MAX_HEADER_BYTES });
    const listener = listen(proxy.app, {
      port,
      portVariable: "PROXY_PORT",
      idleTimeout: IDLE_SECONDS,
      // Counted by the proxy itself, which says what is wrong; Bun would only hang up.
      maxBodyBytes: Number.MAX_SAFE_INTEGER,
      answerFault: proxy.brokenOff,
    });
    return {
      port: listener.port,
      async stop() {
        await listener.stop();
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** What a proxy is known by that takes the place of one that was killed: its machine or container, and its port. */
function nameOf(port: number): string {
  return `${hostname()}:${port || crypto.randomUUID()}`;
}
