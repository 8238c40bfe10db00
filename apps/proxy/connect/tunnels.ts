/**
 * Accepts CONNECT requests (RFC 9110, section 9.3.6) for the configured upstreams, and connects each to one port of
 * this machine, where TLS ends and the proxy answers.
 *
 * P6. No byte of a client goes anywhere else: a request other than CONNECT to port 443 of a configured host is refused,
 *     and its target is never resolved or connected to.
 */
import net from "node:net";
import { networkOf, portError, SharedBudget } from "../../../core/http";

/** More than any client sends. */
const MAX_HEAD_BYTES = 8 * 1024;
/** Longest time from a connection to the end of its request's head, ms. */
const HEAD_TIMEOUT_MS = 10_000;
/** Time for a refused client to close its side, ms. */
const LINGER_MS = 1000;
/** Tunnels open at once, each a client's connection; clients of one address may have half of them. */
const TUNNELS = { most: 1000, mostPer: { network: 500 } };
const END_OF_HEAD = "\r\n\r\n";

interface TunnelOptions {
  port: number;
  host: string;
  /** Lower case. */
  hosts: string[];
  /** Port on the loopback address that tunnels connect to. */
  leadsTo: number;
  /** Records for each tunnel the address of its client, by the local port of the connection there. */
  clients: Map<number, string>;
  headTimeoutMs?: number;
}

export interface Tunnels {
  port: number;
  /** Closes the port and the tunnels. */
  stop(): Promise<void>;
}

/** @throws BasetideError `port_taken` */
export async function openTunnels(options: TunnelOptions): Promise<Tunnels> {
  const { port, host, headTimeoutMs = HEAD_TIMEOUT_MS } = options;
  const sockets = new Set<net.Socket>();
  const places = new SharedBudget<never>(TUNNELS);
  const server = net.createServer((client) => {
    const network = networkOf(client.remoteAddress ?? "unknown");
    const place = places.open({ network }, { giveWay: () => client.destroy() });
    if (!place.take(1)) return client.destroy();
    sockets.add(client);
    client.on("close", () => {
      sockets.delete(client);
      place[Symbol.dispose]();
    });
    client.on("error", () => client.destroy());
    const timer = setTimeout(() => client.destroy(), headTimeoutMs);
    client.on("close", () => clearTimeout(timer));
    let received: Buffer = Buffer.alloc(0);
    const gather = (bytes: Buffer) => {
      received = Buffer.concat([received, bytes]);
      const end = received.indexOf(END_OF_HEAD);
      if (end < 0 && received.length <= MAX_HEAD_BYTES) return;
      clearTimeout(timer);
      client.off("data", gather);
      client.pause();
      const refusal =
        end < 0 ? TOO_LARGE : refusalOf(received.subarray(0, end).toString("latin1"), options.hosts);
      if (refusal) refuse(client, refusal);
      else lead(client, options, received.subarray(end + END_OF_HEAD.length));
    };
    client.on("data", gather);
  });
  await new Promise<void>((resolve, reject) => {
    server.on("error", (cause) => reject(portError(cause, port, "CONNECT_PORT")));
    server.listen(port, host, resolve);
  });
  return {
    port: (server.address() as net.AddressInfo).port,
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

interface TargetRefusal {
  status: string;
  type: string;
  message: string;
}

const TOO_LARGE: TargetRefusal = {
  status: "431 Request Header Fields Too Large",
  type: "PROXY_REQUEST_MALFORMED",
  message: "The head of the request is larger than 8 KB.",
};
const NOT_CONNECT: TargetRefusal = {
  status: "405 Method Not Allowed",
  type: "PROXY_METHOD_NOT_ALLOWED",
  message: "This port accepts only CONNECT requests. Send other requests to the proxy's own port.",
};
const NOT_CONFIGURED: TargetRefusal = {
  status: "403 Forbidden",
  type: "PROXY_HOST_NOT_ALLOWED",
  message:
    "This port connects only to port 443 of the hosts of Airtable's API. Exclude other hosts with NO_PROXY.",
};

/** @param head a request's head, without the empty line at its end */
function refusalOf(head: string, hosts: string[]): TargetRefusal | undefined {
  const [line = ""] = head.split("\r\n", 1);
  const target = /^CONNECT (\S+) HTTP\/1\.[01]$/.exec(line)?.[1];
  if (target === undefined) return NOT_CONNECT;
  return hosts.some((host) => `${host}:443` === target.toLowerCase()) ? undefined : NOT_CONFIGURED;
}

function refuse(client: net.Socket, { status, type, message }: TargetRefusal): void {
  const body = JSON.stringify({ error: { type, message }, sender: "proxy" });
  const head = [
    `HTTP/1.1 ${status}`,
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Connection: close",
  ].join("\r\n");
  // Further data is read and discarded: closing at once would discard the answer before the client reads it.
  client.resume();
  client.end(head + END_OF_HEAD + body);
  const timer = setTimeout(() => client.destroy(), LINGER_MS);
  client.on("close", () => clearTimeout(timer));
}

/** @param first bytes that arrived right after the request */
function lead(client: net.Socket, { leadsTo, clients }: TunnelOptions, first: Buffer): void {
  const inner = net.connect(leadsTo, "127.0.0.1");
  const end = () => {
    client.destroy();
    inner.destroy();
  };
  inner.on("error", end);
  client.on("close", end);
  inner.on("close", end);
  inner.on("connect", () => {
    const from = inner.localPort!;
    clients.set(from, client.remoteAddress ?? "unknown");
    inner.on("close", () => clients.delete(from));
    client.write(`HTTP/1.1 200 Connection Established${END_OF_HEAD}`);
    if (first.length > 0) inner.write(first);
    client.pipe(inner);
    inner.pipe(client);
  });
}
