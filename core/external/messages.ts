/** Postgres protocol messages (version 3) that the gateway writes, and its protocol with its parent. */
import type { ServerAddress } from "./server";

/** Severity of the gateway's own errors; servers are not allowed to use it. */
export const GATEWAY_SEVERITY = "GATEWAY";
/** SQLSTATE `protocol_violation`. */
export const VIOLATION_STATE = "08P01";

/** First line on a connection to the gateway. */
export interface Header {
  /** Identifies the connection in reports. */
  id: number;
  server: ServerAddress;
}

/** From the gateway to its parent. */
export type Report =
  | { type: "ready" }
  | { type: "pong"; beat: number; largest: number }
  | { type: "violation"; id: number; kind: ViolationKind };

export type ViolationKind = "login" | "framing" | "order" | "form" | "size" | "silence";

/** From the parent to the gateway. */
export interface Ping {
  beat: number;
}

/** Of a message: its type and length. */
export const HEAD_BYTES = 5;

/** Builds a message: its type, length and body. */
export function message(type: string, ...parts: (Buffer | string)[]): Buffer {
  const body = parts.map((part) => (typeof part === "string" ? Buffer.from(part) : part));
  const length = body.reduce((sum, part) => sum + part.length, 4);
  const head = Buffer.alloc(HEAD_BYTES);
  head.write(type, 0, "latin1");
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, ...body], length + 1);
}

export function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Builds an ErrorResponse of these fields, by their letters. */
export function errorResponse(fields: Iterable<[string, string]>): Buffer {
  const text = [...fields].map(([letter, value]) => `${letter}${value.replaceAll("\0", "")}\0`);
  return message("E", ...text, "\0");
}

/** Builds a ParameterStatus. */
export function parameterStatus(name: string, value: string): Buffer {
  return message("S", `${name}\0`, `${value}\0`);
}

/** Parameters of the gateway itself: it accepts these names from no server. */
export const LINK_TLS = "basetide.tls";
export const LINK_ADDRESS = "basetide.address";

export const READY_IDLE = message("Z", "I");
export const LOGGED_IN = message("R", int32(0));
