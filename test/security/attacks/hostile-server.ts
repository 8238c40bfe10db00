/** A customer's Postgres server that breaks the protocol, or forwards everything until it turns hostile. */
import net from "node:net";
import type { Random } from "../../../apps/sandbox/random";

export interface HostileServer extends AsyncDisposable {
  url: string;
  mode: Mode;
  connections: number;
}

/** `pass` forwards to an honest server. */
export const MODES = [
  "sasl-crash",
  "short-auth",
  "sasl-iterations",
  "row-description",
  "suspended",
  "flood",
  "rows",
  "hang",
  "bad-length",
  "random-bytes",
  "random-messages",
  "silent-close",
] as const;
export type Mode = (typeof MODES)[number] | "pass";

const SSL_REQUEST = 80_877_103;
const TYPES = "RSZTDC12tEAnsKNvGHWdcIV";

/** @param upstream the honest server for `pass` */
export async function hostileServer(mode: Mode, random: Random, upstream?: string): Promise<HostileServer> {
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    self.connections++;
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
    if (self.mode === "pass") pass(socket, new URL(upstream!));
    else misbehave(socket, self.mode, random);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  const over = new URL(upstream ?? "postgres://u:p@127.0.0.1/db");
  over.hostname = "127.0.0.1";
  over.port = String(port);
  const self: HostileServer = {
    url: over.href,
    mode,
    connections: 0,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return self;
}

function pass(socket: net.Socket, to: URL): void {
  const far = net.connect(Number(to.port), to.hostname);
  socket.pipe(far);
  far.pipe(socket);
  for (const [one, other] of [
    [far, socket],
    [socket, far],
  ] as const) {
    one.on("error", () => other.destroy());
    one.on("close", () => other.destroy());
  }
}

const message = (type: string, body: Buffer) => {
  const head = Buffer.alloc(5);
  head.write(type, 0, "latin1");
  head.writeUInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
};
const int32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
};
const text = (value: string) => Buffer.from(`${value}\0`);
const READY = message("Z", Buffer.from("I"));
const NONE = Buffer.alloc(0);

function misbehave(socket: net.Socket, mode: Mode, random: Random): void {
  let state: "startup" | "sasl" | "ready" | "over" = "startup";
  let buffer = NONE as Buffer;
  socket.on("data", (data) => {
    buffer = Buffer.concat([buffer, data]);
    if (state === "startup") {
      if (buffer.length < 8) return;
      const length = buffer.readUInt32BE(0);
      if (buffer.readUInt32BE(4) === SSL_REQUEST) {
        buffer = buffer.subarray(length);
        socket.write("N");
        return;
      }
      if (buffer.length >= length) state = greet(socket, mode, random);
    } else if (state === "sasl") {
      state = "over";
      const words = mode === "sasl-crash" ? "r=x" : "r=abc,s=AAAA,i=2147483647";
      socket.write(message("R", Buffer.concat([int32(11), Buffer.from(words)])));
    } else if (state === "ready") {
      state = "over";
      answer(socket, mode, random);
    }
  });
}

function greet(socket: net.Socket, mode: Mode, random: Random): "sasl" | "ready" | "over" {
  if (mode === "hang") return "over";
  if (mode === "silent-close") {
    socket.end();
    return "over";
  }
  if (mode === "short-auth") socket.write(message("R", NONE));
  else if (mode === "bad-length")
    socket.write(Buffer.concat([Buffer.from("R"), int32(random.pick([0, 1, 3, 0xffffffff, 0x7fffffff]))]));
  else if (mode === "random-bytes") socket.write(anyBytes(random, random.int(1, 2000)));
  else if (mode.startsWith("sasl")) {
    socket.write(message("R", Buffer.concat([int32(10), text("SCRAM-SHA-256"), Buffer.from("\0")])));
    return "sasl";
  } else {
    const version = message("S", Buffer.concat([text("server_version"), text("18.4")]));
    socket.write(Buffer.concat([message("R", int32(0)), version, READY]));
    return "ready";
  }
  return "over";
}

function answer(socket: net.Socket, mode: Mode, random: Random): void {
  const parsed = Buffer.concat([message("1", NONE), message("t", Buffer.from([0, 0]))]);
  if (mode === "row-description")
    socket.write(Buffer.concat([parsed, message("T", Buffer.from([0, 1, 97, 98]))]));
  if (mode === "suspended") socket.write(Buffer.concat([message("s", NONE), READY, message("s", NONE)]));
  if (mode === "random-messages")
    for (let count = 0; count < 40; count++)
      socket.write(message(random.pick([...TYPES]), anyBytes(random, random.int(0, 40))));
  if (mode === "flood") {
    const head = Buffer.alloc(5);
    head.write("D");
    head.writeUInt32BE(0x7fffff00, 1);
    socket.write(head);
    pump(socket, Buffer.alloc(1 << 20));
  }
  if (mode === "rows") {
    const column = [text("a"), int32(0), Buffer.from([0, 0]), int32(25), Buffer.from([0xff, 0xff])];
    const columns = Buffer.concat([Buffer.from([0, 1]), ...column, int32(0xffffffff), Buffer.from([0, 0])]);
    socket.write(Buffer.concat([parsed, message("T", columns), message("2", NONE)]));
    const row = message("D", Buffer.concat([Buffer.from([0, 1]), int32(1000), Buffer.alloc(1000, 97)]));
    pump(socket, Buffer.concat(Array(1000).fill(row)));
  }
}

function pump(socket: net.Socket, chunk: Buffer): void {
  const go = () => {
    while (!socket.destroyed && socket.write(chunk));
  };
  socket.on("drain", go);
  go();
}

function anyBytes(random: Random, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => random.int(0, 255)));
}
