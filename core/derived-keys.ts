/**
 * Keys that are derived from SECRET_KEY, one per purpose, so that what is signed for one purpose means nothing for
 * another, and nothing to what SECRET_KEY encrypts.
 */
import { createHmac } from "node:crypto";
import { loadSecretKeys } from "./secrets";

/** The key of the current SECRET_KEY first, then those of previous ones. */
export function derivedKeys(config: Parameters<typeof loadSecretKeys>[0], purpose: string): string[] {
  return loadSecretKeys(config).map((key) =>
    createHmac("sha256", Buffer.from(key, "base64")).update(purpose).digest("base64"),
  );
}
