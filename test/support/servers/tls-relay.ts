/**
 * A relay that terminates TLS in front of a Postgres server and may rename its roles, like providers' poolers
 * (`postgres.<ref>`). Clients use TLS to reach it; it uses plain text to the server, whose `pg_stat_ssl` shows that.
 */
import net from "node:net";
import tls from "node:tls";
import type { Certified } from "../../../core/http/authority";

const SSL_REQUEST = 80877103;
const PROTOCOL_3 = 3 << 16;
/** The head of a packet without a type: its length and its kind. */
const HEAD_BYTES = 8;

export interface TlsRelay extends AsyncDisposable {
  port: number;
  /** Connections with TLS, and without. */
  readonly encrypted: number;
  readonly plain: number;
  /** `url` of the server, through the relay, with the role's alias if it has one. */
  over(url: string, sslmode?: string): string;
}

export interface TlsRelayOptions {
  certificate: Certified;
  /**
   * The server's role for each name that clients use: `{"postgres.abc": "app"}`. Other names are passed on unchanged.
   */
  aliases?: Record<string, string>;
  /** Rewrites any other client's name, such as one with a suffix. */
  alias?: (user: string) => string;
  /** Also accepts clients without TLS. */
  allowPlain?: boolean;
}

export async function tlsRelay(
  target: { host: string; port: number },
  { certificate, aliases = {}, alias = (user) => user, allowPlain = false }: TlsRelayOptions,
): Promise<TlsRelay> {
  const context = tls.createSecureContext({ cert: certificate.certificate, key: certificate.key });
  const roleOf = (user: string) => (Object.hasOwn(aliases, user) ? aliases[user]! : alias(user));
  const sockets = new Set<net.Socket>();
  const counts = { encrypted: 0, plain: 0 };
  const server = net.createServer((client) => {
    track(client);
    void serve(client).catch(() => client.destroy());
  });

  function track(socket: net.Socket): void {
    sockets.add(socket);
    socket.on("error", () => socket.destroy()).on("close", () => sockets.delete(socket));
  }

  async function serve(client: net.Socket): Promise<void> {
    const first = await readPacket(client);
    if (first.readInt32BE(4) !== SSL_REQUEST) {
      if (!allowPlain) return void client.destroy();
      counts.plain += 1;
      return forward(client, first);
    }
    client.write("S");
    const inner = new tls.TLSSocket(client, { isServer: true, secureContext: context });
    track(inner);
    counts.encrypted += 1;
    forward(inner, await readPacket(inner));
  }

  /** @param packet the start-up message, or a cancel request */
  function forward(client: net.Socket, packet: Buffer): void {
    const far = net.connect(target.port, target.host);
    track(far);
    far.write(packet.readInt32BE(4) === PROTOCOL_3 ? withRole(packet, roleOf) : packet);
    far.pipe(client);
    client.pipe(far);
    far.on("close", () => client.destroy());
    client.on("close", () => far.destroy());
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  return {
    port,
    get encrypted() {
      return counts.encrypted;
    },
    get plain() {
      return counts.plain;
    },
    over(url, sslmode = "require") {
      const over = Object.assign(new URL(url), { hostname: "127.0.0.1", port: String(port) });
      const known = Object.entries(aliases).find(([, role]) => role === decodeURIComponent(over.username));
      if (known) over.username = encodeURIComponent(known[0]);
      over.searchParams.set("sslmode", sslmode);
      return over.href;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Reads one packet without a type; puts back the bytes after it. */
function readPacket(socket: net.Socket): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let seen = Buffer.alloc(0);
    const onData = (bytes: Buffer) => {
      seen = Buffer.concat([seen, bytes]);
      if (seen.length < HEAD_BYTES || seen.length < seen.readInt32BE(0)) return;
      socket.off("data", onData);
      socket.pause();
      const length = seen.readInt32BE(0);
      if (seen.length > length) socket.unshift(seen.subarray(length));
      resolve(seen.subarray(0, length));
    };
    socket.on("data", onData);
    socket.once("close", () => reject(new Error("The client is gone")));
  });
}

/** The start-up message with the role for the client's name. */
function withRole(packet: Buffer, roleOf: (user: string) => string): Buffer {
  const words = packet.subarray(HEAD_BYTES).toString("utf8").split("\0");
  for (let i = 0; i + 1 < words.length && words[i] !== ""; i += 2) {
    if (words[i] === "user") words[i + 1] = roleOf(words[i + 1]!);
  }
  const body = Buffer.from(words.join("\0"), "utf8");
  const out = Buffer.concat([packet.subarray(0, HEAD_BYTES), body]);
  out.writeInt32BE(out.length, 0);
  return out;
}
