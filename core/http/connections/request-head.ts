/** The head of a request whose headers come from a client, as bytes. */

import type { WireHeaders } from "./connection";

/** The same characters that node:http allows. */
const PATH = /^[\x21-\xff]+$/;
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Set by the connection. */
const OWN = new Set(["host", "content-length", "connection", "transfer-encoding"]);
/** Without a body, these are sent without a length. */
const BODILESS = new Set(["GET", "HEAD", "DELETE", "OPTIONS", "TRACE"]);

/** @throws TypeError if a part of it could end early: the rest would be read as another request */
export function requestHead(
  request: { method: string; path: string; headers: WireHeaders; body: Uint8Array | undefined },
  host: string,
): Buffer {
  const { method, path, headers, body } = request;
  if (!NAME.test(method) || !PATH.test(path)) throw new TypeError("an invalid method or path");
  let head = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n`;
  headers.forEach((value, name) => {
    if (OWN.has(name)) return;
    if (!NAME.test(name) || !VALUE.test(value)) throw new TypeError(`an invalid header ${name}`);
    head += `${name}: ${value}\r\n`;
  });
  if (body !== undefined || !BODILESS.has(method)) head += `content-length: ${body?.length ?? 0}\r\n`;
  return Buffer.from(`${head}\r\n`, "latin1");
}
