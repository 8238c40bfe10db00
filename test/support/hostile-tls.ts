/**
 * Attacks by a Postgres server after it has agreed to TLS: in the handshake, or after a valid one. Each behavior sees
 * the connection from its first packet, the request for TLS.
 */
import { randomBytes } from "node:crypto";
import net from "node:net";
import tls from "node:tls";
import { type Behavior, type Client, clientOf, forever, pour } from "./hostile-postgres";

export interface Pair {
  certificate: string;
  key: string;
}

const CHUNK = 1 << 16;
const DRIP_MS = 300;
const [ALERT, HANDSHAKE, DATA] = [21, 22, 23];
const [HELLO_REQUEST, SERVER_HELLO, CERTIFICATE] = [0, 2, 11];
const YES = Buffer.from("S");

/** @param length written into the record's header */
function record(type: number, body: Buffer, length = body.length): Buffer {
  return Buffer.concat([Buffer.from([type, 3, 3, length >> 8, length & 255]), body]);
}

/** @param length written into the message's header */
function handshake(type: number, body: Buffer, length = body.length): Buffer {
  return Buffer.concat([Buffer.from([type, length >> 16, (length >> 8) & 255, length & 255]), body]);
}

const many = (one: Buffer) => Buffer.concat(Array(Math.ceil(CHUNK / one.length)).fill(one));

/** Agrees to TLS, and reads the client's hello. */
async function agree(client: Client): Promise<void> {
  await client.next();
  await client.send(YES);
  await client.next();
}

const afterHello =
  (...answer: Buffer[]): Behavior =>
  async (client) => {
    await agree(client);
    await client.send(...answer);
    await forever(client);
  };

const endless =
  (chunk: Buffer): Behavior =>
  async (client) => {
    await agree(client);
    await pour(client, chunk);
  };

export const TLS_BEHAVIORS: Record<string, Behavior> = {
  "tls-garbage": afterHello(randomBytes(5000)),
  "tls-plain-postgres": afterHello(Buffer.from("R\0\0\0\u0008\0\0\0\0Z\0\0\0\u0005I")),
  "tls-http": afterHello(Buffer.from("HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")),
  // Data in the same packet as the answer is not encrypted, and must never be treated as encrypted.
  "tls-plain-with-answer": async (client) => {
    await client.next();
    await client.send(Buffer.concat([YES, Buffer.from("R\0\0\0\u0008\0\0\0\0")]));
    await forever(client);
  },
  "tls-twice": async (client) => {
    await client.next();
    await client.send(Buffer.from("SS"));
    await forever(client);
  },
  "tls-stall": async (client) => {
    await client.next();
    await client.send(YES);
    await forever(client);
  },
  "tls-never-answers": forever,
  "tls-unfinished-record": afterHello(record(HANDSHAKE, Buffer.alloc(100), 16_000)),
  "tls-drip": async (client) => {
    await agree(client);
    for (const byte of record(HANDSHAKE, handshake(SERVER_HELLO, randomBytes(300)))) {
      await client.send(Buffer.from([byte]));
      await Bun.sleep(DRIP_MS);
    }
  },
  "tls-closes": async (client) => {
    await agree(client);
    client.socket.destroy();
  },
  "tls-half-closes": async (client) => {
    await agree(client);
    client.socket.end();
    await forever(client);
  },
  "tls-oversized-record": afterHello(record(HANDSHAKE, Buffer.alloc(0xffff))),
  "tls-oversized-message": endless(record(HANDSHAKE, handshake(CERTIFICATE, Buffer.alloc(16_000), 0xffffff))),
  "tls-random-hello": afterHello(record(HANDSHAKE, handshake(SERVER_HELLO, randomBytes(120)))),
  "tls-data-first": afterHello(record(DATA, randomBytes(1000))),
  "tls-alert": afterHello(record(ALERT, Buffer.from([2, 40]))),
  "tls-endless-warnings": endless(many(record(ALERT, Buffer.from([1, 90])))),
  "tls-endless-empty-records": endless(many(record(HANDSHAKE, Buffer.alloc(0)))),
  // Requests a new handshake forever.
  "tls-endless-renegotiation": endless(many(record(HANDSHAKE, handshake(HELLO_REQUEST, Buffer.alloc(0))))),
  "tls-endless-garbage": endless(randomBytes(CHUNK)),
};

/**
 * Valid TLS with this certificate, and `play` inside it.
 *
 * @param injected sent in plain text, in the same packet as the answer to the request for TLS
 */
export function overTls(pair: Pair, play: Behavior, injected: Buffer = Buffer.alloc(0)): Behavior {
  return async (client) => {
    await client.next();
    const server = tls.createServer({ cert: pair.certificate, key: pair.key }, (socket) => {
      socket.on("error", () => {});
      const inner = clientOf(socket, client.random);
      const startUp = inner.next();
      void startUp.then(() => play(inner)).catch(() => {});
    });
    server.on("tlsClientError", () => {});
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const far = net.connect((server.address() as net.AddressInfo).port, "127.0.0.1");
    far.on("error", () => {}).on("close", () => client.socket.destroy());
    far.pipe(client.socket);
    await client.send(Buffer.concat([YES, injected]));
    try {
      for (;;) far.write(await client.next());
    } finally {
      far.destroy();
      server.close();
    }
  };
}
