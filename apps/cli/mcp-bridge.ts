/**
 * Carries the Model Context Protocol between standard input and output, a message per line, and the console's `/mcp`: for
 * clients that start a program instead of opening an address. Each message is a request of its own, and answers come in the
 * order in which they are ready.
 */
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";

interface BridgeOptions {
  /** Of `/mcp`. */
  url: string;
  token: string;
  input: Readable;
  output: Writable;
}

interface Message {
  id?: string | number | null;
  /** Absent in an answer. */
  method?: string;
  params?: { name?: unknown; uri?: unknown; requestId?: unknown; _meta?: Record<string, unknown> };
  result?: { protocolVersion?: unknown };
}

/** Where a message of a current revision says which one; older ones agree on it once. */
const REVISION = "io.modelcontextprotocol/protocolVersion";
/** JSON-RPC: an error of the server. */
const SERVER_ERROR = -32_000;
const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;

/** Returns when the input has ended and every request has its answer. */
export async function bridge({ url, token, input, output }: BridgeOptions): Promise<void> {
  let agreed: string | undefined;
  const open = new Map<unknown, AbortController>();
  const sending = new Set<Promise<void>>();
  const write = (message: object) => output.write(`${JSON.stringify(message)}\n`);
  const fail = ({ id, method }: Message, message: string) => {
    if (id !== undefined && method !== undefined) refuse(id, SERVER_ERROR, message);
  };
  const refuse = (id: Message["id"], code: number, message: string) =>
    write({ jsonrpc: "2.0", id, error: { code, message } });

  async function send(text: string, message: Message): Promise<void> {
    const { id } = message;
    const over = new AbortController();
    if (id !== undefined) open.set(id, over);
    try {
      const response = await fetch(url, {
        method: "POST",
        headers: headersOf(message),
        body: text,
        signal: over.signal,
        redirect: "error",
      });
      const answers = await answersIn(response);
      for (const answer of answers) {
        const { protocolVersion } = answer.result ?? {};
        if (message.method === "initialize" && typeof protocolVersion === "string") agreed = protocolVersion;
        write(answer);
      }
      if (answers.some((answer) => answer.id === id)) return;
      const why = response.ok ? ", which is no answer of the protocol: check the address" : "";
      fail(message, `${url} answered ${response.status}${why}`);
    } catch (error) {
      // A canceled request has no answer.
      if (!over.signal.aborted) fail(message, `${url} cannot be reached: ${(error as Error).message}`);
    } finally {
      if (id !== undefined) open.delete(id);
    }
  }

  function headersOf({ method, params }: Message): Record<string, string> {
    const own = params?._meta?.[REVISION];
    const name = method === "resources/read" ? params?.uri : params?.name;
    return {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...(typeof own === "string"
        ? {
            "mcp-protocol-version": own,
            "mcp-method": method ?? "",
            ...(typeof name === "string" ? { "mcp-name": headerValue(name) } : {}),
          }
        : agreed === undefined
          ? {}
          : { "mcp-protocol-version": agreed }),
    };
  }

  for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    if (line.trim() === "") continue;
    let message: Message;
    try {
      message = JSON.parse(line) as Message;
    } catch {
      refuse(null, PARSE_ERROR, "This line is not JSON");
      continue;
    }
    if (typeof message !== "object" || message === null || Array.isArray(message)) {
      refuse(null, INVALID_REQUEST, "This line is not a message");
      continue;
    }
    // The request's connection is what the server sees of it.
    if (message.method === "notifications/cancelled") {
      open.get(message.params?.requestId)?.abort();
      continue;
    }
    const sent = send(line, message).finally(() => sending.delete(sent));
    sending.add(sent);
    // The next message needs what this one agrees on.
    if (message.method === "initialize") await sent;
  }
  await Promise.all(sending);
}

/** The messages of an answer: JSON, or a stream of events. An answer of something else has none. */
async function answersIn(response: Response): Promise<Message[]> {
  const text = await response.text();
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
  const texts = isStream
    ? text.split(/\r?\n\r?\n/).map((event) =>
        event
          .split(/\r?\n/)
          .filter((one) => one.startsWith("data:"))
          .map((one) => one.slice("data:".length).trimStart())
          .join("\n"),
      )
    : [text];
  return texts.flatMap((one) => {
    try {
      const message = JSON.parse(one) as Message & { jsonrpc?: unknown };
      return message.jsonrpc === "2.0" ? [message] : [];
    } catch {
      return [];
    }
  });
}

/** A header has visible ASCII only: the protocol marks other text as base 64. */
function headerValue(text: string): string {
  return /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith("=?base64?")
    ? text
    : `=?base64?${Buffer.from(text).toString("base64")}?=`;
}
