/** Sends bytes over a socket that no HTTP library would send. */
import net from "node:net";

/** The part of an answer that is read, bytes. */
const ENOUGH = 64 * 1024;

/** Sends bytes, and returns the answer until the other side closes, `timeoutMs` have passed, or it is long enough. */
export function sendBytes(port: number, text: string, timeoutMs = 4000): Promise<string> {
  return new Promise((resolve) => {
    let answer = "";
    const socket = net.connect(port, "127.0.0.1", () => socket.write(text, "latin1"));
    socket.setTimeout(timeoutMs, () => socket.destroy());
    const timer = setTimeout(() => socket.destroy(), timeoutMs);
    socket.on("data", (bytes) => {
      answer += bytes.toString("latin1");
      if (answer.length > ENOUGH) socket.destroy();
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      clearTimeout(timer);
      resolve(answer);
    });
  });
}

/** The status of an answer's head; undefined without one. */
export function statusOf(answer: string): number | undefined {
  const status = /^HTTP\/1\.[01] (\d{3})/.exec(answer)?.[1];
  return status === undefined ? undefined : Number(status);
}

/** Headers that none of our clients sends in this form. `undefined` leaves the line out. */
export function rawRequest(
  line: string,
  host: string | undefined,
  headers: Record<string, string>,
  body = "",
): string {
  const lines = [
    line,
    ...(host === undefined ? [] : [`Host: ${host}`]),
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(body === "" ? [] : ["Content-Type: application/json", `Content-Length: ${Buffer.byteLength(body)}`]),
    "Connection: close",
  ];
  return `${lines.join("\r\n")}\r\n\r\n${body}`;
}
