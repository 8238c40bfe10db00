/** The platforms that there are, with what is known of each without a connection. A new platform is added here. */
import { BasetideError } from "../errors";
import { airtable } from "./airtable/facts";
import type { Dialect } from "./dialect";
import type { SourceLimits } from "./limits";
import type { PlatformFacts } from "./types";

/** In the order that people are shown. */
export const platformFacts: readonly PlatformFacts[] = [airtable];

/** @throws BasetideError `invalid_request` if there is no such platform, naming those there are */
export function factsOf(platformId: string): PlatformFacts {
  return platformById(platformFacts, platformId);
}

/** @throws BasetideError `invalid_request` if there is no such platform, naming those there are */
export function platformById<P extends { id: string }>(all: readonly P[], id: string): P {
  const found = all.find((platform) => platform.id === id);
  if (found) return found;
  const known = all.map((platform) => platform.id).join(", ");
  throw new BasetideError(
    "invalid_request",
    `There is no platform ${JSON.stringify(id)}; there is: ${known}`,
  );
}

/** The platform that the proxy speaks. */
export const proxied: PlatformFacts & { dialect: Dialect } = withDialect();

/**
 * The limits that requests of a quota key (`platform:base`) are held to; for a key of no platform the strictest of all.
 */
export function limitsOfKey(key: string): SourceLimits {
  const platformId = key.slice(0, Math.max(0, key.indexOf(":")));
  return platformFacts.find(({ id }) => id === platformId)?.limits ?? strictest();
}

/** For what all platforms share, as a proxy's part of every key's requests: each limit at its strictest. */
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
    attachmentUrlMs: least((one) => one.attachmentUrlMs),
  };
}

function withDialect(): PlatformFacts & { dialect: Dialect } {
  for (const { dialect, ...facts } of platformFacts) if (dialect) return { ...facts, dialect };
  throw new Error("The proxy has no platform whose API it can forward");
}
