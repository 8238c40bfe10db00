/** An upstream below HTTP libraries: it sees requests byte by byte, and answers with the bytes that a test provides. */
import net from "node:net";

export interface RawRequest {
  /** `GET /v0/x HTTP/1.1` */
  line: string;
  /** Names in lower case. */
  headers: Record<string, string>;
  body: string;
}

export interface RawUpstream extends AsyncDisposable {
  url: string;
  /** In order of arrival. */
  requests: RawRequest[];
  /** Open connections, and how many there were in all. */
  sockets: Set<net.Socket>;
  accepted: number;
  /** Answers each request; the default is an empty object. */
  answer: (socket: net.Socket, request: RawRequest) => void;
}

export async function rawUpstream(): Promise<RawUpstream> {
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    upstream.accepted++;
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
    let pending = "";
    /** The length that `pending` needs before it is parsed again, so that a large body is copied once, not per chunk. */
    let needed = 0;
    socket.on("data", (bytes) => {
      pending += bytes.toString("latin1");
      if (pending.length < needed) return;
      for (let request = take(); request; request = take()) {
        upstream.requests.push(request);
        upstream.answer(socket, request);
      }
    });
    function take(): RawRequest | undefined {
      needed = 0;
      const end = pending.indexOf("\r\n\r\n");
      if (end < 0) return undefined;
      const [line = "", ...rest] = pending.slice(0, end).split("\r\n");
      const headers = Object.fromEntries(
        rest.map((header) => [
          header.slice(0, header.indexOf(":")).toLowerCase(),
          header.slice(header.indexOf(":") + 1).trim(),
        ]),
      );
      needed = end + 4 + Number(headers["content-length"] ?? 0);
      if (pending.length < needed) return undefined;
      const body = pending.slice(end + 4, needed);
      pending = pending.slice(needed);
      return { line, headers, body };
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const upstream: RawUpstream = {
    url: `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`,
    requests: [],
    sockets,
    accepted: 0,
    answer: (socket) => socket.write(httpAnswer(200, {}, "{}")),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return upstream;
}

/** Returns an answer with its length, as bytes. */
export function httpAnswer(
  status: number,
  headers: Record<string, string>,
  body: string | Uint8Array,
): Buffer {
  const bytes = Buffer.from(body);
  const lines = Object.entries({ ...headers, "Content-Length": String(bytes.length) });
  const head = [`HTTP/1.1 ${status} Whatever`, ...lines.map(([name, value]) => `${name}: ${value}`)].join(
    "\r\n",
  );
  return Buffer.concat([Buffer.from(`${head}\r\n\r\n`), bytes]);
}

/** Sends bytes to a port. Returns everything that arrives until the other side closes, or until `isEnough`. */
export function sendRaw(
  port: number,
  text: string,
  isEnough: (answer: string) => boolean = () => false,
): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = "";
    const socket = net.connect(port, "127.0.0.1", () => socket.write(text, "latin1"));
    socket.on("data", (bytes) => {
      answer += bytes.toString("latin1");
      if (isEnough(answer)) socket.destroy();
    });
    socket.on("error", (error) => (answer === "" ? reject(error) : resolve(answer)));
    socket.on("close", () => resolve(answer));
  });
}
