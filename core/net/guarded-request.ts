/**
 * Sends requests to an address that somebody else has chosen.
 *
 * The host is resolved once and refused unless all its addresses are allowed (`address-guard.ts`). The connection goes to
 * a checked address, so a later change of the DNS entry has no effect. Redirects are not followed.
 */
import { lookup } from "node:dns/promises";
import { type RequestOptions, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import type { Config } from "../config";
import { kindOfAddress, whyRefused } from "./address-guard";

interface GuardedRequest {
  /** Of a POST. Without it, the request is a GET. */
  body?: string | undefined;
  allowed: Config["privateDestinations"];
  /** Aborts everything under way. */
  signal: AbortSignal;
  /** What is read of the answer's body, bytes: of a longer one, a byte more than this. 0: it is not waited for. */
  mostBytes: number;
  headers?: Record<string, string>;
  /** For tests: certificates that are trusted. */
  ca?: string | undefined;
  /** Returns the addresses of a host, which are checked. */
  resolve?: ((host: string) => Promise<string[]>) | undefined;
}

interface GuardedAnswer {
  status: number;
  headers: Headers;
  bytes: Uint8Array<ArrayBuffer>;
}

/** @throws Error if an address is not allowed or the host cannot be reached; that of the signal */
export async function guardedRequest(url: string, options: GuardedRequest): Promise<GuardedAnswer> {
  const { body, allowed, signal, mostBytes, headers = {}, ca, resolve: find = addressesOf } = options;
  const { protocol, hostname } = new URL(url);
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  const allow = (addresses: string[]) => {
    const reason = addresses
      .map((address) => whyRefused(kindOfAddress(address), allowed))
      .find((each) => each !== undefined);
    if (reason !== undefined) throw new Error(`${host} ${reason}`);
    return addresses.map((address) => ({ address, family: isIP(address) }));
  };
  if (isIP(host)) allow([host]);
  const guarded: LookupFunction = (name, { all }, done) => {
    find(name)
      .then(allow)
      .then(
        (found) => (all ? done(null, found) : done(null, found[0]!.address, found[0]!.family)),
        (error: Error) => done(error, []),
      );
  };
  const settings: RequestOptions & { ca?: string | undefined } = {
    method: body === undefined ? "GET" : "POST",
    headers: { ...headers, ...(body !== undefined && { "content-length": String(Buffer.byteLength(body)) }) },
    lookup: guarded,
    agent: false,
    signal,
    ...(ca && { ca }),
  };
  const send = protocol === "https:" ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const sent = send(url, settings, (response) => {
      const parts: Buffer[] = [];
      let size = 0;
      const end = () => {
        const bytes = new Uint8Array(Buffer.concat(parts)).slice(0, mostBytes + 1);
        resolve({ status: response.statusCode ?? 0, headers: headersOf(response.headers), bytes });
        response.destroy();
      };
      if (mostBytes === 0) return end();
      response.on("data", (part: Buffer) => {
        size += part.length;
        parts.push(part);
        if (size > mostBytes) end();
      });
      response.on("end", end);
      response.on("error", reject);
      response.on("aborted", () => reject(new Error(`${host} ended the connection`)));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

async function addressesOf(host: string): Promise<string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

function headersOf(sent: NodeJS.Dict<string | string[]>): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(sent))
    for (const one of [value ?? []].flat()) headers.append(name, one);
  return headers;
}
