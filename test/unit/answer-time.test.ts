/**
 * How long a silent connection is kept: not long until its request is complete, and then for as long as the answer
 * takes.
 */
import net from "node:net";
import { describe, expect, test } from "vitest";
import { allowLongAnswer, listen } from "../../core/http";

describe("a silent connection", () => {
  /** The shortest that Bun supports: it checks every four seconds. */
  const idleTimeout = 1;

  /** Sends text, and resolves with the answer's first line or with what ended the connection. */
  function send(port: number, text: string): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<string>();
    const socket = net.connect(port, "127.0.0.1", () => socket.write(text));
    socket.on("data", (data) => resolve(String(data).split("\r\n")[0]!));
    socket.on("close", () => resolve("closed"));
    socket.on("error", () => resolve("closed"));
    return promise.finally(() => socket.destroy());
  }

  test("is closed before its request is complete, and stays open for an answer that may take long", async () => {
    const isPatient = (request: Request) => request.url.endsWith("/long");
    const app = {
      async fetch(request: Request) {
        await request.text();
        if (isPatient(request)) allowLongAnswer(request);
        await released.promise;
        return new Response("here");
      },
    };
    const released = Promise.withResolvers<void>();
    const listener = listen(app, {
      port: 0,
      portVariable: "PORT",
      host: "127.0.0.1",
      idleTimeout,
      drainMs: 0,
    });
    try {
      const head = (path: string, rest: string) => `POST ${path} HTTP/1.1\r\nHost: localhost\r\n${rest}`;
      const long = send(listener.port, "GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n");
      const begun = ["", "G", head("/long", "X-A: "), head("/long", "Content-Length: 9\r\n\r\nx")];
      const ends = await Promise.all(begun.map((text) => send(listener.port, text)));
      expect(ends).toEqual(begun.map(() => "closed"));
      released.resolve();
      expect(await long).toBe("HTTP/1.1 200 OK");
    } finally {
      await listener.stop();
    }
  }, 30_000);
});
