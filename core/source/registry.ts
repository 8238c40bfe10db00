/** All platforms, with their properties that are known without a connection. A new platform is added here. */
import { BasetideError } from "../errors";
import { airtable } from "./airtable/facts";
import type { Dialect } from "./dialect";
import type { SourceLimits } from "./limits";
import type { PlatformFacts } from "./types";

/** In display order. */
export const platformFacts: readonly PlatformFacts[] = [airtable];

/** @throws BasetideError `invalid_request` if there is no such platform, naming the known ones */
export function factsOf(platformId: string): PlatformFacts {
  return platformById(platformFacts, platformId);
}

/** @throws BasetideError `invalid_request` if there is no such platform, naming the known ones */
export function platformById<P extends { id: string }>(all: readonly P[], id: string): P {
  const found = all.find((platform) => platform.id === id);
  if (found) return found;
  const known = all.map((platform) => platform.id).join(", ");
  throw new BasetideError(
    "invalid_request",
    `There is no platform ${JSON.stringify(id)}. Platforms: ${known}`,
  );
}

/** The platform whose API the proxy forwards. */
export const proxied: PlatformFacts & { dialect: Dialect } = withDialect();

/** Returns the limits for requests of a quota key (`platform:base`); for a key of no platform, the strictest of all. */
export function limitsOfKey(key: string): SourceLimits {
  const platformId = key.slice(0, Math.max(0, key.indexOf(":")));
  return platformFacts.find(({ id }) => id === platformId)?.limits ?? strictest();
}

/**
 * Returns each limit at its strictest, for resources that all platforms share, such as a proxy's share of every key's
 * requests.
 */
export function strictest(): SourceLimits {
  const all = platformFacts.map(({ limits }) => limits);
  const least = (limit: (one: SourceLimits) => number) => Math.min(...all.map(limit));
  const most = (limit: (one: SourceLimits) => number) => Math.max(...all.map(limit));
  return {
    windowMs: most((one) => one.windowMs),
    requestsPerWindow: least((one) => one.requestsPerWindow),
    slowedPerWindow: least((one) => one.slowedPerWindow),
    userRequestsPerWindow: least((one) => one.userRequestsPerWindow),
    penaltyMs: most((one) => one.penaltyMs),
    pageSize: least((one) => one.pageSize),
    writeSize: least((one) => one.writeSize),
    attachmentUrlMs: least((one) => one.attachmentUrlMs),
  };
}

function withDialect(): PlatformFacts & { dialect: Dialect } {
  for (const { dialect, ...facts } of platformFacts) if (dialect) return { ...facts, dialect };
  throw new Error("The proxy has no platform whose API it can forward");
}
