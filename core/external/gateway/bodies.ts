/** Checks the bodies of a server's messages: every length and end is within its message. */

import { cutText } from "../../cut-text";
import { JSON_BYTES, MAX_COLUMNS, MESSAGE_BYTES, OTHER_BYTES } from "../limits";
import { HEAD_BYTES as BODY, errorResponse } from "../messages";
import { GatewayRefusal, Violation } from "./fault";
import { isTooDeep } from "./json-depth";

/** Bytes after a column's name: table, number, type, size, modifier, format. */
const COLUMN_BYTES = 18;
/** Offset of the type within them. */
const TYPE_AT = 6;
/** Longest text of one error field that reaches the log and users. */
const ERROR_FIELD_CHARS = 2000;
const SEVERITIES = new Set(["ERROR", "FATAL", "PANIC"]);
/** Parameters that are passed on; the driver would only store the others for as long as it lives. */
const PARAMETERS = new Set(["server_version", "server_encoding", "client_encoding", "in_hot_standby"]).union(
  new Set(["default_transaction_read_only", "standard_conforming_strings", "TimeZone", "DateStyle"]),
);
const PARAMETER_CHARS = 200;
const COMMAND_TAG_BYTES = 100;

export function wrongForm(what: string): Violation {
  return new Violation("form", `${what} is malformed`);
}

/** How a driver parses the values of a column. */
export interface ColumnDescription {
  isJson: boolean;
  maxBytes: number;
}

/** OIDs of json and jsonb, and of bytea, name, text, bpchar and varchar. */
const JSON_TYPES = new Set([114, 3802]);
const TEXT_TYPES = new Set([17, 19, 25, 1042, 1043]);

function columnOf(type: number): ColumnDescription {
  const isJson = JSON_TYPES.has(type);
  return { isJson, maxBytes: isJson ? JSON_BYTES : TEXT_TYPES.has(type) ? MESSAGE_BYTES : OTHER_BYTES };
}

/** @returns the columns of a RowDescription */
export function columnsOf(whole: Buffer): ColumnDescription[] {
  if (whole.length < BODY + 2) throw wrongForm("RowDescription");
  const count = whole.readUInt16BE(BODY);
  if (count > MAX_COLUMNS) throw wrongForm("RowDescription");
  const columns: ColumnDescription[] = [];
  let at = BODY + 2;
  for (let column = 0; column < count; column++) {
    const end = whole.indexOf(0, at);
    if (end === -1 || end + 1 + COLUMN_BYTES > whole.length) throw wrongForm("RowDescription");
    columns.push(columnOf(whole.readUInt32BE(end + 1 + TYPE_AT)));
    at = end + 1 + COLUMN_BYTES;
  }
  if (at !== whole.length) throw wrongForm("RowDescription");
  return columns;
}

/** A DataRow must have exactly one value per described column, and no further bytes. */
export function checkRow(whole: Buffer, columns: ColumnDescription[]): void {
  const { length } = whole;
  if (length < BODY + 2 || whole.readUInt16BE(BODY) !== columns.length) throw wrongForm("DataRow");
  let at = BODY + 2;
  for (const { isJson, maxBytes } of columns) {
    if (at + 4 > length) throw wrongForm("DataRow");
    const size = whole.readInt32BE(at);
    if (size < -1 || at + 4 + size > length) throw wrongForm("DataRow");
    at += 4;
    // Not a protocol violation, so it does not count against the server.
    if (size > maxBytes)
      throw new GatewayRefusal("54000", `a value of ${size} bytes exceeds the limit of ${maxBytes}`);
    if (isJson && size > 0 && isTooDeep(whole, at, at + size))
      throw new Violation("form", "JSON that is nested too deeply");
    at += Math.max(size, 0);
  }
  if (at !== length) throw wrongForm("DataRow");
}

export function checkParameterTypes(whole: Buffer): void {
  if (whole.length < BODY + 2 || whole.length !== BODY + 2 + 4 * whole.readUInt16BE(BODY))
    throw wrongForm("ParameterDescription");
}

export function checkEmpty(whole: Buffer): void {
  if (whole.length !== BODY) throw wrongForm("a message without a body");
}

export function checkCommandTag(whole: Buffer): void {
  const isText = whole.indexOf(0, BODY) === whole.length - 1;
  if (!isText || whole.length > BODY + COMMAND_TAG_BYTES) throw wrongForm("CommandComplete");
}

export function checkReady(whole: Buffer): void {
  const state = String.fromCharCode(whole[BODY] ?? 0);
  if (whole.length !== BODY + 1 || !"ITE".includes(state)) throw wrongForm("ReadyForQuery");
}

/** NotificationResponse: a process, a channel and a text. */
export function checkNotification(whole: Buffer): void {
  const channelEnd = whole.indexOf(0, BODY + 4);
  const isWhole = channelEnd !== -1 && whole.indexOf(0, channelEnd + 1) === whole.length - 1;
  if (!isWhole || channelEnd + 1 >= whole.length) throw wrongForm("NotificationResponse");
}

/** BackendKeyData: the key that cancels a statement. */
export function checkBackendKey(whole: Buffer): void {
  if (whole.length !== BODY + 8) throw wrongForm("BackendKeyData");
}

/** Is this a ParameterStatus that is passed on to the driver? */
export function isKnownParameter(whole: Buffer): boolean {
  const parts = whole.toString("utf8", BODY).split("\0");
  if (parts.length !== 3 || parts[2] !== "") throw wrongForm("ParameterStatus");
  return PARAMETERS.has(parts[0]!) && parts[1]!.length <= PARAMETER_CHARS;
}

interface ServerError {
  /** The message for the driver: the server's, with bounded texts. */
  message: Buffer;
  isFatal: boolean;
  code: string;
  text: string;
}

export function readError(whole: Buffer): ServerError {
  const fields = new Map<string, string>();
  let at = BODY;
  while (whole[at] !== 0) {
    const end = whole.indexOf(0, at + 1);
    if (at >= whole.length || end === -1) throw wrongForm("ErrorResponse");
    fields.set(
      String.fromCharCode(whole[at]!),
      whole.toString("utf8", at + 1, Math.min(end, at + 1 + 4 * ERROR_FIELD_CHARS)),
    );
    at = end + 1;
  }
  const severity = fields.get("V") ?? fields.get("S") ?? "";
  const code = fields.get("C") ?? "";
  // Servers before version 9.6 send the severity in their own language only.
  if (at !== whole.length - 1 || !/^[0-9A-Z]{5}$/.test(code)) throw wrongForm("ErrorResponse");
  if (fields.has("V") && !SEVERITIES.has(severity)) throw wrongForm("ErrorResponse");
  const texts = [...fields].map(
    ([letter, text]) => [letter, cutText(text, ERROR_FIELD_CHARS)] as [string, string],
  );
  return {
    message: errorResponse(texts),
    isFatal: severity === "FATAL" || severity === "PANIC",
    code,
    text: cutText(fields.get("M") ?? "", ERROR_FIELD_CHARS),
  };
}
