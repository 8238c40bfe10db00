/**
 * One request over HTTP, and the head of its answer.
 *
 * P5. A write is sent once, and so is whatever the ledger counts. Over node:http and not `fetch`: Bun's sends a GET, PUT
 * or DELETE again by itself when a kept connection breaks before the answer, which the source counts and the ledger
 * never hears of.
 */
import http from "node:http";
import https from "node:https";
import type { Duplex } from "node:stream";

/** A kept connection that rests for so long is closed, ms: before those between us and the source forget it. */
const KEPT_MS = 20_000;

// A proxy of the machine's is gone through, as `fetch` does.
const common = { proxyEnv: process.env };
const kept = { ...common, keepAlive: true, timeout: KEPT_MS };
const agents = {
  "http:": { kept: new http.Agent(kept), fresh: new http.Agent(common) },
  "https:": { kept: new https.Agent(kept), fresh: new https.Agent(common) },
};

export interface UpstreamRequest {
  method: string;
  url: string;
  headers: Headers;
  body: Uint8Array<ArrayBuffer> | undefined;
}

/** A kept connection broke before an answer; as a rule the source had closed it before we asked. */
export class StaleConnection extends Error {}

/**
 * Sends the request; the body of the answer is to be read, or its stream to be destroyed.
 *
 * @param signal breaks off the request, and later the body
 * @param options.isFresh on a connection of its own, which cannot be stale
 * @throws StaleConnection, or whatever node:http finds wrong with the way, the request or the answer
 */
export function exchange(
  { method, url, headers, body }: UpstreamRequest,
  signal: AbortSignal,
  { isFresh = false }: { isFresh?: boolean } = {},
): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    const target = new URL(url);
    // Of a URL alone node:http drops a `?` with nothing behind it.
    const path = target.href.slice(target.href.indexOf("/", target.protocol.length + 2));
    const isSecure = target.protocol === "https:";
    const agent = agents[isSecure ? "https:" : "http:"][isFresh ? "fresh" : "kept"];
    const sent = Object.fromEntries(headers);
    // node:http gives the body of a DELETE no length: the source would take it for a request of its own.
    if (body !== undefined) sent["content-length"] = String(body.length);
    const asking = (isSecure ? https : http).request(target, { path, method, headers: sent, agent });
    // Its own `signal` option costs some 20 µs more a request. Once the answer is read this does nothing.
    const breakOff = () => {
      asking.destroy();
      reject(new Error("broken off"));
    };
    signal.addEventListener("abort", breakOff);
    if (signal.aborted) breakOff();
    let answer: http.IncomingMessage | undefined;
    asking.on("error", (error: NodeJS.ErrnoException) => {
      // A body that goes on until the connection ends would count as whole.
      answer?.destroy(error);
      const isBroken = error.code === "ECONNRESET" || error.code === "EPIPE";
      reject(isBroken && asking.reusedSocket ? new StaleConnection() : error);
    });
    const take = (head: http.IncomingMessage) => {
      answer = head;
      // Heard by whoever reads the body, or by nobody.
      head.on("error", () => {});
      const status = head.statusCode ?? 0;
      if (status >= 200 && status <= 599) return resolve(head);
      head.socket.destroy();
      reject(new RangeError(`${status} is no status of an answer`));
    };
    asking.on("response", take);
    // A source that changes the protocol, or takes CONNECT for more than a word, is left.
    const leave = (_head: unknown, socket: Duplex) => {
      socket.destroy();
      reject(new Error("the source does not go on in HTTP"));
    };
    asking.on("upgrade", leave).on("connect", leave);
    asking.end(body);
  });
}
