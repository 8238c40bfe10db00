/**
 * A relay in front of a Postgres server that refuses statements with its own error, like providers' servers with
 * extensions that a test cannot load. Simple queries only.
 */
import net from "node:net";

export interface RefusingRelay extends AsyncDisposable {
  host: string;
  port: number;
  /** Texts of the simple queries that passed. */
  readonly queries: string[];
}

export interface Refusal {
  code: string;
  message: string;
}

/** @param refuse returns the error for a statement; undefined for one that goes to the server */
export async function refusingRelay(
  target: { host: string; port: number },
  refuse: (query: string) => Refusal | undefined,
): Promise<RefusingRelay> {
  const sockets = new Set<net.Socket>();
  const queries: string[] = [];
  const server = net.createServer((client) => {
    const far = net.connect(target.port, target.host);
    for (const [socket, other] of [
      [client, far],
      [far, client],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => socket.destroy()).on("close", () => other.destroy());
    }
    far.pipe(client);
    let seen = Buffer.alloc(0);
    let isStarted = false;
    client.on("data", (bytes) => {
      seen = Buffer.concat([seen, bytes]);
      for (;;) {
        // The first packet has no type.
        const head = isStarted ? 1 : 0;
        if (seen.length < head + 4 || seen.length < head + seen.readInt32BE(head)) return;
        const length = head + seen.readInt32BE(head);
        const message = seen.subarray(0, length);
        seen = seen.subarray(length);
        const query = isStarted && message[0] === 0x51 ? message.toString("utf8", 5, length - 1) : undefined;
        isStarted = true;
        if (query !== undefined) queries.push(query);
        const refusal = query === undefined ? undefined : refuse(query);
        if (refusal) client.write(answer(refusal));
        else far.write(message);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    host: "127.0.0.1",
    port: (server.address() as net.AddressInfo).port,
    queries,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** ErrorResponse, and ReadyForQuery outside a transaction. */
function answer({ code, message }: Refusal): Buffer {
  const fields = Buffer.from(`SERROR\0VERROR\0C${code}\0M${message}\0\0`);
  const head = Buffer.alloc(5);
  head.write("E", 0, "latin1");
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields, Buffer.from([0x5a, 0, 0, 0, 5, 0x49])]);
}
