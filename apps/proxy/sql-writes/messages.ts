/** Messages of Postgres' protocol 3, as far as a server of one kind of query needs them. */
import { MAX_WRITE_BYTES } from "../../../core/replica";

/** Of messages before the client is known. */
const MAX_EARLY_BYTES = 8 * 1024;

const SSL_REQUEST = 80_877_103;
const GSS_REQUEST = 80_877_104;
const PROTOCOL_3 = 3;

export type ProtocolMessage =
  /** TLS, or GSSAPI. */
  | { kind: "encryption"; isTls: boolean }
  | { kind: "other_version" }
  | { kind: "startup"; parameters: Map<string, string> }
  | { kind: "typed"; type: string; body: Buffer };

export class ProtocolError extends Error {}

/** Splits what arrives into messages. */
export class MessageReader {
  #chunks: Buffer[] = [];
  #length = 0;
  #hasStarted = false;
  /** The client has authenticated: messages may be long. */
  isKnown = false;

  /** Bytes that have arrived, of a message that is not complete. */
  get length(): number {
    return this.#length;
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
  }

  /** Forgets what has arrived. */
  clear(): void {
    this.#chunks = [];
    this.#length = 0;
  }

  /** Returns the next complete message. @throws ProtocolError */
  next(): ProtocolMessage | undefined {
    const headBytes = this.#hasStarted ? 5 : 4;
    if (this.#length < headBytes) return undefined;
    // Until a long message is complete, only its head is looked at.
    if (this.#chunks[0]!.length < headBytes) this.#join();
    const size = this.#chunks[0]!.readUInt32BE(headBytes - 4);
    const most = this.isKnown ? MAX_WRITE_BYTES : MAX_EARLY_BYTES;
    if (size < 4 || size > most) throw new ProtocolError(`a message of ${size} bytes`);
    const total = headBytes - 4 + size;
    if (this.#length < total) return undefined;
    const joined = this.#join();
    const message = joined.subarray(0, total);
    this.#length -= total;
    this.#chunks = this.#length > 0 ? [joined.subarray(total)] : [];
    if (this.#hasStarted)
      return { kind: "typed", type: String.fromCharCode(message[0]!), body: message.subarray(5) };
    if (size < 8) throw new ProtocolError("a startup message without a version");
    const code = message.readUInt32BE(4);
    if (code === SSL_REQUEST || code === GSS_REQUEST)
      return { kind: "encryption", isTls: code === SSL_REQUEST };
    if (code >>> 16 !== PROTOCOL_3) return { kind: "other_version" };
    this.#hasStarted = true;
    return { kind: "startup", parameters: parametersOf(message.subarray(8)) };
  }

  #join(): Buffer {
    const joined = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
    this.#chunks = [joined];
    return joined;
  }
}

function parametersOf(body: Buffer): Map<string, string> {
  const texts = body.toString("utf8").split("\0");
  const parameters = new Map<string, string>();
  for (let at = 0; at + 1 < texts.length && texts[at] !== ""; at += 2)
    parameters.set(texts[at]!, texts[at + 1]!);
  return parameters;
}

/** Returns the text of a query, or of another message that is a text with a zero at its end. */
export function queryText(body: Buffer): string {
  return body.subarray(0, body.at(-1) === 0 ? -1 : undefined).toString("utf8");
}

/** The first message of a SASL exchange. @throws ProtocolError */
export function saslInitial(body: Buffer): { mechanism: string; data: string } {
  const end = body.indexOf(0);
  if (end < 0 || body.length < end + 5) throw new ProtocolError("a malformed SASL message");
  return {
    mechanism: body.subarray(0, end).toString("latin1"),
    data: body.subarray(end + 5).toString("utf8"),
  };
}

function message(type: string, ...parts: (Buffer | string)[]): Buffer {
  const body = Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : part)));
  const head = Buffer.alloc(5);
  head.write(type, 0, "latin1");
  head.writeUInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

/** Steps of authentication with SASL, by their codes. */
const SASL = { offer: 10, continue: 11, final: 12 } as const;
const TEXT_OID = 25;

export const answers = {
  sasl: (step: keyof typeof SASL, text: string) =>
    message("R", int32(SASL[step]), step === "offer" ? `${text}\0\0` : text),
  ready: () => message("Z", "I"),
  authenticated: () => {
    const status = (name: string, value: string) => message("S", `${name}\0${value}\0`);
    return Buffer.concat([
      message("R", int32(0)),
      // Without the encoding, libpq asks for it.
      status("client_encoding", "UTF8"),
      status("server_encoding", "UTF8"),
      status("server_version", "18.0"),
      status("standard_conforming_strings", "on"),
      message("K", int32(0), int32(0)),
      answers.ready(),
    ]);
  },
  /** One row with one text. */
  row: (text: string) => {
    const bytes = Buffer.from(text);
    return Buffer.concat([
      message("T", int16(1), "answer\0", int32(0), int16(0), int32(TEXT_OID), int16(-1), int32(-1), int16(0)),
      message("D", int16(1), int32(bytes.length), bytes),
      message("C", "SELECT 1\0"),
      answers.ready(),
    ]);
  },
  error: (sqlState: string, text: string) =>
    message("E", `SFATAL\0VFATAL\0C${sqlState}\0M${text.replaceAll("\0", "")}\0\0`),
};
