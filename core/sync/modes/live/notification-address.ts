/**
 * Determines where a base's notifications are sent: to this console, if the source can reach it.
 *
 * That cannot be known from inside. With an address in a private network it cannot, unless the source is in one, too
 * (a sandbox). For an address that looks public, the notifications themselves are the proof, and the feed is polled
 * until one arrives.
 */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { Config } from "../../../config";
import { kindOfAddress } from "../../../net";

export interface NotificationAddress {
  /** Null: the feed must be polled. */
  url: string | null;
  /** False if it could not be determined, which is no reason to change the current one. */
  isSure: boolean;
}

type AddressConfig = Pick<Config, "consoleUrl" | "livePings" | "upstreams">;
/** Returns the addresses of a name. @throws if there are none, or the name server does not answer */
type LookUp = (host: string) => Promise<string[]>;

/** Names that mean another machine on every network, or none. */
const PRIVATE_NAME =
  /^[^.]+$|\.(local|localhost|internal|intranet|lan|home|home\.arpa|private|test|invalid)$/i;

export async function notificationAddress(
  { consoleUrl, livePings, upstreams }: AddressConfig,
  base: { id: string; platform: string },
  lookUp: LookUp = lookUpAll,
): Promise<NotificationAddress> {
  const url = `${consoleUrl}/hooks/${base.platform}/${base.id}`;
  if (livePings === "on") return { url, isSure: true };
  if (livePings === "off") return { url: null, isSure: true };
  const own = await isPublic(consoleUrl, lookUp);
  if (own === undefined) return { url: null, isSure: false };
  if (own) return { url, isSure: true };
  const sources = await Promise.all(Object.values(upstreams).map((address) => isPublic(address, lookUp)));
  const isSourceNear = sources.every((isFar) => isFar === false);
  return { url: isSourceNear ? url : null, isSure: !sources.includes(undefined) };
}

/** Returns whether the address is on the public internet; undefined if its name cannot be resolved at the moment. */
async function isPublic(url: string, lookUp: LookUp): Promise<boolean | undefined> {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, "");
  if (isIP(host)) return kindOfAddress(host) === "public";
  if (PRIVATE_NAME.test(host)) return false;
  try {
    return (await lookUp(host)).every((address) => kindOfAddress(address) === "public");
  } catch {
    return undefined;
  }
}

async function lookUpAll(host: string): Promise<string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}
