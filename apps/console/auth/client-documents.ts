/**
 * Reads the documents with which the clients of agents describe themselves, and their keys: from addresses that strangers
 * choose, so behind the address guard. The library caches them, limits how many it reads, and checks what they say.
 */
import type { Config } from "../../../core/config";
import { guardedRequest } from "../../../core/net";

/** The library refuses longer ones. */
const MOST_BYTES = 5 * 1024;
/** That of the library is as long, and starts before. */
const TIMEOUT_MS = 5000;

/** For tests: certificates that are trusted, and names that no server knows. */
export interface DocumentNetwork {
  ca?: string;
  resolve?: (host: string) => Promise<string[]>;
  timeoutMs?: number;
}

/** @returns the library's transport */
export function documentFetch(config: Pick<Config, "privateDestinations">, network: DocumentNetwork = {}) {
  const { timeoutMs = TIMEOUT_MS, ca, resolve } = network;
  return async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const url = input instanceof Request ? input.url : String(input);
    const signals = [AbortSignal.timeout(timeoutMs), ...(init?.signal ? [init.signal] : [])];
    const { status, headers, bytes } = await guardedRequest(url, {
      allowed: config.privateDestinations,
      signal: AbortSignal.any(signals),
      mostBytes: MOST_BYTES,
      headers: Object.fromEntries(new Headers(init?.headers)),
      ca,
      resolve,
    });
    const isEmpty = status === 204 || status === 205 || status === 304;
    return new Response(isEmpty ? null : bytes, { status, headers });
  };
}
