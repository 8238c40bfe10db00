/**
 * A source that answers some requests in any way, down to the bytes: a server in front of a sandbox that passes all other
 * requests on, each after the usual time of an answer.
 */
import net from "node:net";

export interface SourceRequest {
  method: string;
  /** With its query. */
  path: string;
  body: string;
}

/** Bytes to send, and whether the connection ends after them; null: none, for as long as the fault lasts. */
export type RawAnswer = { bytes: string | Buffer; isEnd?: boolean } | null;

/** Answers a request in place of the sandbox; undefined leaves it to the sandbox. */
export type Answerer = (
  request: SourceRequest,
  passed: () => Promise<{ status: number; body: string }>,
) => RawAnswer | undefined | Promise<RawAnswer | undefined>;

export interface BrokenSource extends AsyncDisposable {
  url: string;
  /** Answers the requests of a base from now on; null: as the sandbox does. */
  answer(baseId: string, answerer: Answerer | null): void;
}

const LATENCY_MS = 80;
const JITTER_MS = 20;

export function rawAnswer(status: number, body: string | Buffer, headers: string[] = []): RawAnswer {
  const bytes = Buffer.from(body);
  const head = [
    `HTTP/1.1 ${status} Any`,
    "Content-Type: application/json",
    `Content-Length: ${bytes.length}`,
    `Date: ${new Date().toUTCString()}`,
    ...headers,
  ];
  return { bytes: Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), bytes]) };
}

export async function startBrokenSource(url: string): Promise<BrokenSource> {
  const answerers = new Map<string, Answerer>();
  const sockets = new Set<net.Socket>();

  async function answered(request: SourceRequest, headers: Record<string, string>): Promise<RawAnswer> {
    await Bun.sleep(LATENCY_MS + JITTER_MS * (2 * Math.random() - 1));
    const pass = async () => {
      const answer = await fetch(url + request.path, {
        method: request.method,
        headers,
        ...(request.body && { body: request.body }),
      });
      return { status: answer.status, body: await answer.text(), type: answer.headers.get("retry-after") };
    };
    const [baseId] = /app\w{14}/.exec(request.path) ?? [];
    const own = await answerers.get(baseId ?? "")?.(request, pass);
    if (own !== undefined) return own;
    const { status, body } = await pass();
    return rawAnswer(status, body);
  }

  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    let received = Buffer.alloc(0);
    let busy = Promise.resolve();
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    socket.on("data", (chunk) => {
      received = Buffer.concat([received, chunk]);
      for (;;) {
        const end = received.indexOf("\r\n\r\n");
        if (end < 0) return;
        const [line, ...lines] = received.subarray(0, end).toString().split("\r\n");
        const headers: Record<string, string> = {};
        for (const one of lines)
          headers[one.slice(0, one.indexOf(":")).toLowerCase()] = one.slice(one.indexOf(":") + 1).trim();
        const length = Number(headers["content-length"] ?? 0);
        if (received.length < end + 4 + length) return;
        const body = received.subarray(end + 4, end + 4 + length).toString();
        received = received.subarray(end + 4 + length);
        const [method, path] = line!.split(" ") as [string, string];
        const { authorization, "content-type": type } = headers;
        const passedOn = { ...(authorization && { authorization }), ...(type && { "content-type": type }) };
        busy = busy.then(async () => {
          const answer = await answered({ method, path, body }, passedOn).catch(() => ({
            bytes: "",
            isEnd: true,
          }));
          if (!answer || socket.destroyed) return;
          if (answer.bytes.length > 0) socket.write(answer.bytes);
          if ("isEnd" in answer && answer.isEnd) socket.destroySoon();
        });
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`,
    answer(baseId, answerer) {
      if (answerer) answerers.set(baseId, answerer);
      else answerers.delete(baseId);
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
