/**
 * Sends a body to an address that a customer has chosen.
 *
 * The request is guarded (`core/net/guarded-request.ts`). Its answer's body is not read, and the total time is limited.
 */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { Config } from "../config";
import { guardedRequest, kindOfAddress, whyRefused } from "../net";

/** Longest time that a receiver may take, ms. */
const POST_TIMEOUT_MS = 10_000;

/** Why a message was not delivered, as text for people, without the address. */
export class NotDelivered extends Error {
  override readonly name = "NotDelivered";
}

interface Post {
  url: string;
  body: string;
  headers: Record<string, string>;
}

/** @throws NotDelivered unless the receiver answers with a 2xx */
export async function post(
  { url, body, headers }: Post,
  allowed: Config["privateDestinations"],
  { timeoutMs = POST_TIMEOUT_MS, ca }: { timeoutMs?: number; ca?: string } = {},
): Promise<void> {
  const host = new URL(url).hostname.replace(/^\[(.*)\]$/, "$1");
  if (isIP(host)) checkAddress(host, allowed);
  // Of its addresses, once they are known.
  let isPublic = isIP(host) > 0 && kindOfAddress(host) === "public";
  const resolve = async (name: string) => {
    const addresses = await checkReceiver(name, allowed);
    isPublic = addresses.every((address) => kindOfAddress(address) === "public");
    return addresses;
  };
  const signal = AbortSignal.timeout(timeoutMs);
  const sent = { ...headers, "content-type": "application/json" };
  const request = { body, headers: sent, allowed, signal, ca, resolve, mostBytes: 0 };
  const { status } = await guardedRequest(url, request).catch((error: Error) => {
    throw inWords(error, isPublic, signal.aborted ? timeoutMs : null);
  });
  if (status >= 200 && status < 300) return;
  const why = status >= 300 && status < 400 ? "; redirects are not followed" : "";
  throw new NotDelivered(`The receiver answered ${status}${why}`);
}

/** Returns all addresses of the host. @throws NotDelivered if it is unknown, or one of them is not allowed */
export async function checkReceiver(host: string, allowed: Config["privateDestinations"]): Promise<string[]> {
  const addresses = isIP(host) ? [host] : await lookUp(host);
  for (const address of addresses) checkAddress(address, allowed);
  return addresses;
}

async function lookUp(host: string): Promise<string[]> {
  const found = await lookup(host, { all: true }).catch(() => []);
  if (found.length === 0) throw new NotDelivered(`We couldn't find ${host}. Check the address`);
  return found.map(({ address }) => address);
}

function checkAddress(address: string, allowed: Config["privateDestinations"]): void {
  if (whyRefused(kindOfAddress(address), allowed) !== undefined)
    throw new NotDelivered(
      "The receiver is not on the internet: its address is in a private network. ALLOW_PRIVATE_DESTINATIONS allows private addresses",
    );
}

/**
 * Describes a driver's error: its own text may contain the address. For an address within a private network, all errors
 * are one, so that a webhook is no scan of its ports.
 */
function inWords(error: Error, isPublic: boolean, timeoutMs: number | null): NotDelivered {
  if (error instanceof NotDelivered) return error;
  if (!isPublic && !(error.cause instanceof NotDelivered)) {
    return new NotDelivered(
      "The receiver cannot be reached, did not answer in time, or its certificate cannot be trusted",
    );
  }
  if (timeoutMs !== null) return new NotDelivered(`The receiver did not answer within ${timeoutMs / 1000} s`);
  if (error.cause instanceof NotDelivered) return error.cause;
  const code = "code" in error ? String(error.code) : "";
  if (/CERT|SSL|TLS|SELF_SIGNED|UNABLE_TO_VERIFY/.test(code)) {
    return new NotDelivered(`The receiver's certificate cannot be trusted (${code})`);
  }
  return new NotDelivered(`The receiver cannot be reached${/^[A-Z_0-9]+$/i.test(code) ? ` (${code})` : ""}`);
}
