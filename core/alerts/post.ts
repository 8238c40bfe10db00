/**
 * Sends a body to an address that a customer has chosen.
 *
 * The address is resolved once and refused unless it is allowed (`core/net/address-guard.ts`). The connection goes
 * to the resolved address, so a later change of the DNS entry has no effect. Redirects are not followed, the
 * answer's body is not read, and the total time is limited.
 */
import { lookup } from "node:dns/promises";
import { type RequestOptions, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import type { Config } from "../config";
import { kindOfAddress } from "../net";

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
  options: { timeoutMs?: number; ca?: string } = {},
): Promise<void> {
  const { protocol, hostname } = new URL(url);
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  if (isIP(host)) checkAddress(host, allowed);
  const reached: Reached = { isPublic: isIP(host) ? kindOfAddress(host) === "public" : false };
  const timeoutMs = options.timeoutMs ?? POST_TIMEOUT_MS;
  const signal = AbortSignal.timeout(timeoutMs);
  const send = protocol === "https:" ? requestHttps : requestHttp;
  const settings: RequestOptions & { ca?: string | undefined } = {
    method: "POST",
    headers: {
      ...headers,
      "content-type": "application/json",
      "content-length": String(Buffer.byteLength(body)),
    },
    lookup: guardedLookup(allowed, reached),
    agent: false,
    signal,
    ca: options.ca,
  };
  const status = await new Promise<number>((resolve, reject) => {
    const sent = send(url, settings, (response) => {
      resolve(response.statusCode ?? 0);
      response.destroy();
    });
    sent.on("error", (error) => reject(inWords(error, reached, signal.aborted ? timeoutMs : null)));
    sent.end(body);
  });
  if (status >= 200 && status < 300) return;
  throw new NotDelivered(
    status >= 300 && status < 400
      ? `The receiver answered ${status}; redirects are not followed`
      : `The receiver answered ${status}`,
  );
}

/** Returns all addresses of the host. @throws NotDelivered if it is unknown, or one of them is not allowed */
export async function checkReceiver(host: string, allowed: Config["privateDestinations"]): Promise<string[]> {
  const addresses = isIP(host) ? [host] : await lookUp(host);
  for (const address of addresses) checkAddress(address, allowed);
  return addresses;
}

/** What the addresses of a request's host are, once they are known. */
interface Reached {
  isPublic: boolean;
}

function guardedLookup(allowed: Config["privateDestinations"], reached: Reached): LookupFunction {
  return (host, options, done) => {
    checkReceiver(host, allowed).then(
      (addresses) => {
        reached.isPublic = addresses.every((address) => kindOfAddress(address) === "public");
        const all = addresses.map((address) => ({ address, family: isIP(address) }));
        if (options.all) done(null, all);
        else done(null, all[0]!.address, all[0]!.family);
      },
      (error: NotDelivered) => done(error, []),
    );
  };
}

async function lookUp(host: string): Promise<string[]> {
  const found = await lookup(host, { all: true }).catch(() => []);
  if (found.length === 0) throw new NotDelivered(`We couldn't find ${host}. Check the address`);
  return found.map(({ address }) => address);
}

function checkAddress(address: string, allowed: Config["privateDestinations"]): void {
  const kind = kindOfAddress(address);
  const isAllowed =
    kind === "public" ||
    (kind === "loopback" && allowed !== "no") ||
    (kind === "private" && allowed === "yes");
  if (!isAllowed)
    throw new NotDelivered(
      "The receiver is not on the internet: its address is in a private network. ALLOW_PRIVATE_DESTINATIONS allows private addresses",
    );
}

/**
 * Describes a driver's error: its own text may contain the address. For an address within a private network, all errors
 * are one, so that a webhook is no scan of its ports.
 */
function inWords(error: Error, { isPublic }: Reached, timeoutMs: number | null): NotDelivered {
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
