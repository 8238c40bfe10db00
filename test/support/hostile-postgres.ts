/**
 * A hostile Postgres server: it breaks the protocol in a given or random way, at any point of a connection. For tests
 * of the code that connects to servers hosted by customers.
 */
import net from "node:net";
import { int32, message } from "../../core/external/messages";

const SSL_REQUEST = 80877103;
const SIMPLE_QUERY = 0x51;
const CHUNK = 1 << 16;

/** Random numbers that a seed reproduces. */
export type Random = () => number;

/** One connection, as the server sees it. */
export interface Client {
  socket: net.Socket;
  random: Random;
  /**
   * The next packet of the client, without those that prepare its session; rejects when the client has disconnected.
   */
  next(): Promise<Buffer>;
  /** Whether the client is let in, and the queries that prepare a session are answered correctly. */
  isPrepared: boolean;
  /** Resolves when the data is sent; at once if the client no longer reads. */
  send(...parts: Buffer[]): Promise<void>;
}

export type Behavior = (client: Client) => Promise<void>;

export interface HostileServer extends AsyncDisposable {
  port: number;
  connections: number;
  /** The number of open connections. */
  readonly open: number;
  /** The behaviors that the last connections met. */
  recent: string[];
  /** How often each behavior was used. */
  shown: Map<string, number>;
  /** Sets the behavior of new connections: a name of BEHAVIORS, `random`, or a function. */
  behave(next: string | Behavior): void;
  url(user?: string): string;
  /** Ends all connections. */
  cut(): void;
}

/** The server process's id, as reported at login. */
const PID = 1;
const text = (value: string) => Buffer.from(`${value}\0`);
const int16 = (value: number) => Buffer.from([value >> 8, value & 255]);
const EMPTY = Buffer.alloc(0);
const READY = message("Z", "I");
const LET_IN = message("R", int32(0));
const PARSED = message("1", EMPTY);
const NO_PARAMETERS = message("t", int16(0));
const BOUND = message("2", EMPTY);
const SASL = message("R", int32(10), text("SCRAM-SHA-256"), "\0");

const parameter = (name: string, value: string) => message("S", text(name), text(value));

/** @param types OIDs of the columns */
const description = (...types: number[]) =>
  message(
    "T",
    int16(types.length),
    ...types.flatMap((type) => [
      text("a"),
      int32(0),
      int16(0),
      int32(type),
      int16(0xffff),
      int32(0xffffffff),
      int16(0),
    ]),
  );
const row = (...values: Buffer[]) =>
  message("D", int16(values.length), ...values.flatMap((value) => [int32(value.length), value]));
const errorOf = (fields: Record<string, string>) =>
  message("E", ...Object.entries(fields).map(([letter, value]) => text(letter + value)), "\0");

const [JSON_TYPE, TEXT_TYPE, TEXT_ARRAY, JSON_ARRAY] = [114, 25, 1009, 199];

async function letIn(client: Client): Promise<void> {
  client.isPrepared = true;
  await client.send(
    LET_IN,
    parameter("server_version", "18.4"),
    parameter("client_encoding", "UTF8"),
    // A primary that accepts writes, which servers since version 14 report by themselves.
    parameter("in_hot_standby", "off"),
    parameter("default_transaction_read_only", "off"),
    message("K", int32(PID), int32(2)),
    READY,
  );
}

/** The answer to the queries of `core/postgres/session.ts` on a new connection; undefined for anything else. */
function sessionAnswer(packet: Buffer): Buffer | undefined {
  const query = packet.toString("latin1", 5);
  if (packet[0] !== SIMPLE_QUERY || !query.startsWith("select pg_catalog.pg_backend_pid() as pid"))
    return undefined;
  const names = ["pid", "most", ...[...query.matchAll(/ as (v\d+)/g)].map(([, name]) => name!)];
  const columns = names.flatMap((name) => [
    text(name),
    int32(0),
    int16(0),
    int32(TEXT_TYPE),
    int16(0xffff),
    int32(0xffffffff),
    int16(0),
  ]);
  const values = names.map(() => Buffer.from(String(PID)));
  return Buffer.concat([
    message("T", int16(names.length), ...columns),
    row(...values),
    message("C", "SELECT 1\0"),
    READY,
  ]);
}

/** Lets the client in, and answers its first request with these parts. */
const afterLogin =
  (...answer: Buffer[]): Behavior =>
  async (client) => {
    await letIn(client);
    await client.next();
    await client.send(...answer);
    await forever(client);
  };

const atLogin =
  (...answer: Buffer[]): Behavior =>
  async (client) => {
    await client.send(...answer);
    await forever(client);
  };

/** Lets the client in, sends `head`, and then `chunk` forever. */
const endless =
  (chunk: Buffer, ...head: Buffer[]): Behavior =>
  async (client) => {
    await letIn(client);
    await client.next();
    await client.send(...head);
    await pour(client, chunk);
  };

export async function pour(client: Client, chunk: Buffer): Promise<void> {
  while (!client.socket.destroyed) await client.send(chunk);
}

/** Reads everything and never answers. */
export async function forever(client: Client): Promise<void> {
  while (!client.socket.destroyed) await client.next();
}

const many = (one: Buffer) => Buffer.concat(Array(Math.ceil(CHUNK / one.length)).fill(one));

function sasl(challenge: string): Behavior {
  return async (client) => {
    await client.send(SASL);
    const first = (await client.next()).toString("latin1");
    const nonce = /r=([^,]+)$/.exec(first)?.[1] ?? "";
    await client.send(message("R", int32(11), challenge.replace("NONCE", nonce)));
    await forever(client);
  };
}

/** Answers everything with one row of one large, valid value. */
function largeValue(type: number, value: string): Behavior {
  const rows = [row(Buffer.from(value)), message("C", "SELECT 1\0"), READY];
  return async (client) => {
    await letIn(client);
    while (!client.socket.destroyed) {
      const isSimple = (await client.next())[0] === SIMPLE_QUERY;
      if (isSimple) await client.send(description(type), ...rows);
      else await client.send(PARSED, NO_PARAMETERS, description(type), BOUND, ...rows);
    }
  };
}

const HEAD_OF_ROWS = [PARSED, NO_PARAMETERS, description(TEXT_TYPE), BOUND];
const head = (type: string, length: number) => {
  const bytes = Buffer.alloc(5);
  bytes.write(type, "latin1");
  bytes.writeUInt32BE(length, 1);
  return bytes;
};

export const BEHAVIORS: Record<string, Behavior> = {
  // Messages that once crashed, froze or exhausted a process on their own (finding S4).
  "sasl-crash": sasl("r=x"),
  "short-auth": atLogin(message("R", EMPTY)),
  suspended: afterLogin(message("s", EMPTY), READY, message("s", EMPTY)),
  "sasl-rounds": sasl("r=NONCEx,s=AAAA,i=2147483647"),
  "endless-name": afterLogin(PARSED, NO_PARAMETERS, message("T", int16(1), "ab")),
  "huge-row": endless(Buffer.alloc(CHUNK), ...HEAD_OF_ROWS, head("D", 0x7fffff00)),
  "endless-rows": endless(many(row(Buffer.alloc(1000, 97))), ...HEAD_OF_ROWS),
  // Authentication.
  "sasl-nonce": sasl("r=abc,s=AAAA,i=4096"),
  "sasl-no-salt": sasl("r=NONCEx,i=4096"),
  "sasl-unproven": async (client) => {
    await client.send(SASL);
    const nonce = /r=([^,]+)$/.exec((await client.next()).toString("latin1"))?.[1];
    await client.send(message("R", int32(11), `r=${nonce}x,s=AAAA,i=4096`));
    await client.next();
    await letIn(client);
    await forever(client);
  },
  "sasl-wrong-proof": async (client) => {
    await client.send(SASL);
    const nonce = /r=([^,]+)$/.exec((await client.next()).toString("latin1"))?.[1];
    await client.send(message("R", int32(11), `r=${nonce}x,s=AAAA,i=100000`));
    await client.next();
    await client.send(message("R", int32(12), "v=AAAA"));
    await letIn(client);
    await forever(client);
  },
  "sasl-final-first": atLogin(message("R", int32(12), "v=AAAA")),
  "plain-password": atLogin(message("R", int32(3))),
  "md5-no-salt": atLogin(message("R", int32(5))),
  "unknown-auth": atLogin(message("R", int32(4711))),
  "endless-auth": async (client) => pour(client, many(message("R", int32(10)))),
  "endless-login": async (client) => {
    await client.send(LET_IN);
    await pour(client, many(parameter("a", "b")));
  },
  // The start.
  closes: async ({ socket }) => void socket.destroy(),
  "half-closes": async (client) => {
    client.socket.end();
    await forever(client);
  },
  silent: forever,
  "not-postgres": atLogin(Buffer.from("HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")),
  refuses: atLogin(errorOf({ S: "FATAL", V: "FATAL", C: "28P01", M: "no" })),
  "refuses-oddly": atLogin(errorOf({ S: "FATAL", V: "GATEWAY", C: "\u00e4", M: "no" })),
  "slow-drip": async (client) => {
    for (const byte of Buffer.concat([LET_IN, READY])) {
      await client.send(Buffer.from([byte]));
      await Bun.sleep(300);
    }
    await forever(client);
  },
  "long-login-message": atLogin(head("R", 0x10000000), Buffer.alloc(CHUNK)),
  // Framing.
  "length-zero": afterLogin(head("Z", 0)),
  "length-negative": afterLogin(head("Z", 0xffffffff)),
  "unknown-message": afterLogin(message("!", "abc"), READY),
  "endless-unknown": endless(many(message("\0", EMPTY))),
  zeros: endless(Buffer.alloc(CHUNK)),
  "unfinished-message": afterLogin(...HEAD_OF_ROWS, head("D", 1000), Buffer.from("abc")),
  // Order and form.
  unasked: async (client) => {
    await letIn(client);
    await client.send(row(Buffer.from("a")), READY);
    await forever(client);
  },
  "rows-undescribed": afterLogin(PARSED, NO_PARAMETERS, message("n", EMPTY), BOUND, row(Buffer.from("a"))),
  "too-many-values": afterLogin(...HEAD_OF_ROWS, row(Buffer.from("a"), Buffer.from("b"))),
  "value-too-long": afterLogin(...HEAD_OF_ROWS, message("D", int16(1), int32(1000), "a")),
  "value-negative": afterLogin(...HEAD_OF_ROWS, message("D", int16(1), int32(0xfffffff0))),
  "parameters-too-few": afterLogin(PARSED, message("t", int16(1000))),
  "copy-out": afterLogin(PARSED, NO_PARAMETERS, message("H", "\0", int16(0)), message("d", "abc")),
  "copy-in": afterLogin(PARSED, message("G", "\0", int16(0))),
  "close-complete": afterLogin(message("3", EMPTY)),
  "function-result": afterLogin(message("V", int32(0))),
  "short-error": afterLogin(message("E", "C")),
  "empty-error": afterLogin(message("E", EMPTY)),
  "ready-ready": endless(many(READY)),
  // Endless, and large within the limits.
  "endless-notices": endless(many(message("N", text("SNOTICE"), text("C00000"), text("Mx"), "\0"))),
  "endless-parameters": endless(many(parameter("x".repeat(100), "y"))),
  "endless-notifications": endless(many(message("A", int32(1), text("a"), text("b")))),
  "endless-errors": endless(many(errorOf({ S: "ERROR", V: "ERROR", C: "XX000", M: "x" }))),
  "endless-empty-rows": endless(
    many(message("D", int16(0))),
    PARSED,
    NO_PARAMETERS,
    message("T", int16(0)),
    BOUND,
  ),
  "deep-json": largeValue(JSON_TYPE, "[".repeat(1_000_000)),
  "long-json": largeValue(JSON_TYPE, `[${"{},".repeat(300_000)}0]`),
  "longer-json": largeValue(JSON_TYPE, `[${"{},".repeat(4_000_000)}0]`),
  "long-array": largeValue(TEXT_ARRAY, `{${"a,".repeat(100_000)}a}`),
  "json-array": largeValue(JSON_ARRAY, `{"${"[".repeat(250_000)}"}`),
  "long-text": largeValue(TEXT_TYPE, "a".repeat(4_000_000)),
  "hangs-after-login": afterLogin(),
  // What prepares the session.
  "odd-session": async (client) => {
    await letIn(client);
    client.isPrepared = false;
    for (;;) {
      await client.next();
      await client.send(description(TEXT_TYPE), row(Buffer.from("a")), message("C", "SELECT 1\0"), READY);
    }
  },
  "no-session": async (client) => {
    await letIn(client);
    client.isPrepared = false;
    await client.next();
    await client.send(message("C", "SELECT 0\0"), READY);
    await forever(client);
  },
};

/** Messages with their types, lengths, bodies and order at random, some of them right. */
export const RANDOM: Behavior = async (client) => {
  const { random } = client;
  const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)]!;
  const bytes = (max: number) => Buffer.from(Array.from({ length: random() * max }, () => random() * 256));
  const right = [LET_IN, READY, PARSED, NO_PARAMETERS, BOUND, description(TEXT_TYPE), row(Buffer.from("a"))];
  const one = (): Buffer => {
    const kind = random();
    if (kind < 0.5) return pick(right);
    if (kind < 0.8) return message(pick([..."RSKZ12tTnDCEsNAIGHdcWVv3!"]), bytes(pick([4, 40, 4000])));
    if (kind < 0.9) return head(pick([..."DTERSZ"]), Math.floor(random() * 2 ** pick([3, 16, 31])));
    return bytes(100);
  };
  if (random() < 0.8) await letIn(client);
  const count = random() * 30;
  for (let sent = 0; sent < count; sent++) {
    if (random() < 0.3) await Promise.race([client.next(), Bun.sleep(20)]);
    await client.send(one());
  }
  if (random() < 0.7) client.socket.destroy();
  else await forever(client);
};

/**
 * A proxy to a real server that behaves correctly until the `turnAt`-th message that the server sends after login, and
 * then drops, duplicates or changes messages, or continues with `behavior`.
 */
export function turning(upstream: { host: string; port: number }, turnAt: number): Behavior {
  return async (client) => {
    const { random, socket } = client;
    const server = net.connect(upstream.port, upstream.host);
    server.on("error", () => socket.destroy()).on("close", () => socket.destroy());
    socket.on("close", () => server.destroy());
    const { promise: over, resolve } = Promise.withResolvers<void>();
    socket.once("close", () => resolve());
    let [isIn, count, rest] = [false, 0, EMPTY as Buffer];
    server.on("data", (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      while (rest.length >= 5 && rest.length > rest.readUInt32BE(1)) {
        const whole = rest.subarray(0, rest.readUInt32BE(1) + 1);
        rest = rest.subarray(whole.length);
        count += isIn ? 1 : 0;
        isIn ||= whole[0] === 0x5a;
        for (const part of count >= turnAt ? twisted(Buffer.from(whole), random) : [whole])
          socket.write(part);
      }
    });
    for (;;) {
      const packet = await Promise.race([client.next(), over]);
      if (!packet) return;
      server.write(packet);
    }
  };
}

function twisted(whole: Buffer, random: Random): Buffer[] {
  const kind = Math.floor(random() * 8);
  if (kind === 0) return [];
  if (kind === 1) return [whole, whole];
  if (kind === 2) whole[0] = 65 + random() * 58;
  else if (kind === 3) whole.writeUInt32BE(Math.floor(random() * 2 ** 31), 1);
  else if (kind === 4 && whole.length > 5)
    whole[5 + Math.floor(random() * (whole.length - 5))]! ^= 1 + random() * 255;
  else if (kind === 5) return [whole.subarray(0, random() * whole.length)];
  else if (kind === 6) return [message("s", EMPTY), whole];
  return [whole];
}

/** Starts a hostile server on a free port of this machine. */
export async function hostilePostgres(options: { seed?: number } = {}): Promise<HostileServer> {
  const random = randomOf(options.seed ?? 1);
  const sockets = new Set<net.Socket>();
  let behavior: string | Behavior = "silent";
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).once("close", () => sockets.delete(socket));
    hostile.connections += 1;
    hostile.recent = [...hostile.recent.slice(-7), typeof behavior === "string" ? behavior : "turning"];
    const name = typeof behavior === "string" ? behavior : "turning";
    hostile.shown.set(name, (hostile.shown.get(name) ?? 0) + 1);
    const play = typeof behavior === "string" ? (BEHAVIORS[behavior] ?? RANDOM) : behavior;
    void greet(socket, random, play).catch(() => {});
  });
  const hostile: HostileServer = {
    port: 0,
    connections: 0,
    get open() {
      return sockets.size;
    },
    recent: [],
    shown: new Map(),
    behave(next) {
      behavior = next;
    },
    url: (user = "u") => `postgres://${user}:p@127.0.0.1:${hostile.port}/db`,
    cut() {
      for (const socket of sockets) socket.destroy();
    },
    async [Symbol.asyncDispose]() {
      hostile.cut();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  hostile.port = (server.address() as net.AddressInfo).port;
  return hostile;
}

/** Refuses TLS and reads the start-up packet, unless a behavior handles them itself. */
async function greet(socket: net.Socket, random: Random, play: Behavior): Promise<void> {
  const client = clientOf(socket, random);
  const isTurning = !Object.values(BEHAVIORS).includes(play) && play !== RANDOM;
  if (!isTurning) {
    const first = await client.next();
    if (first.length >= 8 && first.readUInt32BE(4) === SSL_REQUEST) {
      await client.send(Buffer.from("N"));
      await client.next();
    }
  }
  await play(client);
}

export function clientOf(socket: net.Socket, random: Random): Client {
  const packets: Buffer[] = [];
  let wake: (() => void) | undefined;
  const notify = () => wake?.();
  socket.on("data", (chunk: Buffer) => {
    packets.push(chunk);
    notify();
  });
  socket.on("close", notify).on("drain", notify);
  const change = () =>
    new Promise<void>((resolve) => {
      wake = resolve;
    });
  return {
    socket,
    random,
    isPrepared: false,
    async next() {
      for (;;) {
        while (packets.length === 0) {
          if (socket.destroyed) throw new Error("gone");
          await change();
        }
        const packet = packets.shift()!;
        const answer = this.isPrepared ? sessionAnswer(packet) : undefined;
        if (!answer) return packet;
        socket.write(answer);
      }
    },
    async send(...parts) {
      for (const part of parts) {
        if (socket.destroyed) return;
        if (!socket.write(part)) await change();
      }
    },
  };
}

/** mulberry32. */
export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
