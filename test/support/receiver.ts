/** A receiver of webhooks that stores what it receives, and answers as a test sets it. */

export interface Received {
  path: string;
  headers: Headers;
  body: string;
}

export interface Receiver {
  /** The URL of `path`; the path counts as a secret. */
  url(path?: string): string;
  received: Received[];
  /** Its answers from now on, none before `after`; 200 at once at first. */
  answer: { status: number; headers?: Record<string, string>; after?: Promise<void> };
  [Symbol.asyncDispose](): Promise<void>;
}

/** @param hostname of this machine */
export function startReceiver(hostname = "127.0.0.1"): Receiver {
  const received: Received[] = [];
  const server = Bun.serve({
    port: 0,
    hostname,
    async fetch(request) {
      received.push({
        path: new URL(request.url).pathname,
        headers: request.headers,
        body: await request.text(),
      });
      const { status, headers, after } = receiver.answer;
      await after;
      return new Response("Bye", { status, headers: headers ?? {} });
    },
  });
  const receiver: Receiver = {
    url: (path = "/hook") => `http://${hostname}:${server.port}${path}`,
    received,
    answer: { status: 200 },
    [Symbol.asyncDispose]: () => server.stop(true),
  };
  return receiver;
}
