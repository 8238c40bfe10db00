/**
 * Opens a connection to an address (scheme, host and port): TCP, TLS for https, through the machine's HTTP proxy if the
 * environment names one. Measures one round trip while doing so.
 */
import http from "node:http";
import net from "node:net";
import type { Duplex } from "node:stream";
import tls from "node:tls";
import { getProxyForUrl } from "proxy-from-env";

/** Longest total time to open a connection, ms. */
const OPEN_MS = 10_000;
/** TCP keepalive starts after this much silence, ms. */
const PROBE_AFTER_MS = 10_000;

export interface OpenedSocket {
  socket: Duplex & Pick<net.Socket, "ref" | "unref">;
  /** One round trip, ms: of the TLS handshake, or of the TCP one for http. */
  roundTripMs: number;
  /** The mean of all measured round trips, ms: intermediaries in front of a server may delay either kind. */
  usualMs: number;
}

/** Lets later connections to the same host resume their TLS session. */
export interface TlsSession {
  ticket?: Buffer;
}

/**
 * @param ca a certificate authority in place of those that the machine trusts, PEM
 * @throws Error with the `code` that node:net or node:tls gives, or `ETIMEDOUT`
 */
export async function openSocket(address: string, session: TlsSession, ca?: string): Promise<OpenedSocket> {
  const url = new URL(address);
  const timer = AbortSignal.timeout(OPEN_MS);
  const startedAt = performance.now();
  const proxy = getProxyForUrl(address);
  const through = proxy ? await tunnel(new URL(proxy), url, timer) : undefined;
  if (url.protocol !== "https:") {
    const tcp = prepared(through ?? (await connected(net.connect(endOf(url)), timer)));
    const tcpMs = performance.now() - startedAt;
    return { socket: tcp, roundTripMs: tcpMs, usualMs: tcpMs };
  }
  const { host, port } = endOf(url);
  const secure = tls.connect({
    // If we opened the TCP socket first, Bun would deliver every answer twice: encrypted to that socket, and decrypted to
    // this one.
    ...(through ? { socket: prepared(through) } : { port }),
    host,
    servername: net.isIP(host) ? "" : url.hostname,
    ALPNProtocols: ["http/1.1"],
    ...(session.ticket && { session: session.ticket }),
    ...(ca && { ca }),
  });
  secure.on("session", (fresh: Buffer) => {
    session.ticket = fresh;
  });
  let tcpAt = performance.now();
  if (!through) {
    secure.once("connect", () => {
      tcpAt = performance.now();
      prepared(secure);
    });
  }
  await connected(secure, timer, "secureConnect");
  const now = performance.now();
  return { socket: secure, roundTripMs: now - tcpAt, usualMs: (now - startedAt) / 2 };
}

function prepared<T extends net.Socket>(socket: T): T {
  socket.setNoDelay(true);
  return socket.setKeepAlive(true, PROBE_AFTER_MS);
}

function endOf({ hostname, port, protocol }: URL): { host: string; port: number } {
  return {
    host: hostname.replace(/^\[|\]$/g, ""),
    port: Number(port) || (protocol === "https:" ? 443 : 80),
  };
}

function connected<T extends net.Socket>(socket: T, timer: AbortSignal, event = "connect"): Promise<T> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => {
      timer.removeEventListener("abort", expire);
      socket.destroy();
      reject(error);
    };
    const expire = () => fail(Object.assign(new Error("the connection was not opened in time"), TIMED_OUT));
    const close = () =>
      fail(Object.assign(new Error("the connection was closed while it was being opened"), RESET));
    timer.addEventListener("abort", expire, { once: true });
    socket.once("error", fail).once("close", close);
    socket.once(event, () => {
      timer.removeEventListener("abort", expire);
      socket.off("error", fail).off("close", close);
      resolve(socket);
    });
  });
}

const TIMED_OUT = { code: "ETIMEDOUT" };
const RESET = { code: "ECONNRESET" };

/** Opens a connection to `url` through an HTTP proxy (CONNECT). */
function tunnel(proxy: URL, url: URL, timer: AbortSignal): Promise<net.Socket> {
  const { host, port } = endOf(url);
  const target = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  const credentials = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
  return new Promise((resolve, reject) => {
    const asking = http.request({
      ...endOf(proxy),
      method: "CONNECT",
      path: target,
      headers: {
        host: target,
        ...(proxy.username && {
          "proxy-authorization": `Basic ${Buffer.from(credentials).toString("base64")}`,
        }),
      },
      signal: timer,
    });
    asking.on("error", reject);
    asking.once("connect", ({ statusCode }, socket: net.Socket) => {
      if (statusCode === 200) return resolve(socket);
      socket.destroy();
      reject(
        Object.assign(new Error(`the HTTP proxy answered ${statusCode}`), { code: `PROXY_${statusCode}` }),
      );
    });
    asking.once("response", ({ statusCode }) => {
      asking.destroy();
      reject(
        Object.assign(new Error(`the HTTP proxy answered ${statusCode}`), { code: `PROXY_${statusCode}` }),
      );
    });
    asking.end();
  });
}
