/**
 * Secrets at rest: API keys and database passwords, encrypted with AES-256-GCM.
 *
 * An encrypted secret is `v1.<key id>.<nonce>.<ciphertext+tag>` in base64url. The key id (first bytes of the key's
 * hash) tells which key encrypted it, so that a box with the new and the old key can read both during a rotation. The
 * context (`bases.api_key:<id>`) is authenticated: an encrypted value copied into another row cannot be decrypted
 * there.
 */
import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "./config";
import { BasetideError } from "./errors";

/** A secret that nothing can guess, as text for URLs: 32 random bytes. */
export function newSecret(): string {
  return randomBytes(32).toString("base64url");
}

const ALGORITHM = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** The columns that hold secrets, without their prefix `encrypted_` (`core/control/setup/encryption.ts`), and cookies. */
type SecretPlace =
  | `alert_webhooks.${"secret" | "url"}`
  | `base_drafts.${"api_key" | "url"}`
  | `bases.${"api_key" | "attachment_key" | "hash_key" | "write_secret"}`
  | `change_items.${"after" | "before" | "cells" | "error" | "expected"}`
  | "clusters.admin_url"
  | `databases.${"console_password" | "password" | "reader_url" | "url"}`
  | "console.flash"
  | "live_feeds.secret"
  | "sql_users.password";

/** Where a secret is stored: the column, and the id of its row. */
export type SecretContext = `${SecretPlace}:${string}`;

export interface SecretBox {
  /** Encrypts with the current key. */
  encrypt(plain: string, context: SecretContext): string;
  /** @throws BasetideError `secret_unreadable` if it was encrypted with another key or context */
  decrypt(encrypted: string, context: SecretContext): string;
  /** Was `encrypted` created with the current key? If not, a rotation must encrypt it again. */
  isCurrent(encrypted: string): boolean;
  /** The prefix of everything encrypted with the current key. */
  currentPrefix: string;
}

/** @param keys base64 of 32 bytes each; the first encrypts, all of them decrypt */
export function createSecretBox(keys: [string, ...string[]]): SecretBox {
  const keysById = new Map(keys.map((key) => [keyId(key), Buffer.from(key, "base64")]));
  const currentId = keyId(keys[0]);
  const current = keysById.get(currentId)!;
  const currentPrefix = `v1.${currentId}.`;
  return {
    encrypt(plain, context) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(ALGORITHM, current, nonce).setAAD(Buffer.from(context));
      const body = Buffer.concat([cipher.update(plain, "utf8"), cipher.final(), cipher.getAuthTag()]);
      return `${currentPrefix}${nonce.toString("base64url")}.${body.toString("base64url")}`;
    },
    decrypt(encrypted, context) {
      const [version, id, nonce, body] = encrypted.split(".");
      const key = keysById.get(id ?? "");
      if (version !== "v1" || !key || !nonce || !body) throw new BasetideError("secret_unreadable");
      try {
        const bytes = Buffer.from(body, "base64url");
        const decipher = createDecipheriv(ALGORITHM, key, Buffer.from(nonce, "base64url"))
          .setAAD(Buffer.from(context))
          .setAuthTag(bytes.subarray(-TAG_BYTES));
        return decipher.update(bytes.subarray(0, -TAG_BYTES), undefined, "utf8") + decipher.final("utf8");
      } catch (cause) {
        throw new BasetideError("secret_unreadable", undefined, { cause });
      }
    },
    isCurrent: (encrypted) => encrypted.startsWith(currentPrefix),
    currentPrefix,
  };
}

/**
 * Returns the key to use: `SECRET_KEY`, else the one stored in `DATA_DIR`, else a new one that is stored there (mode
 * 0600).
 *
 * @throws BasetideError `config_invalid` in production without SECRET_KEY: a key stored next to the data protects
 *   nothing
 */
function loadSecretKey(config: Pick<Config, "secretKey" | "dataDir" | "isProduction">): string {
  if (config.secretKey) return config.secretKey;
  if (config.isProduction) {
    throw new BasetideError(
      "config_invalid",
      "SECRET_KEY is required in production; create one with `openssl rand -base64 32`",
    );
  }
  const path = join(config.dataDir, "secret-key");
  if (!existsSync(path)) {
    mkdirSync(config.dataDir, { recursive: true });
    writeFileSync(path, `${randomBytes(32).toString("base64")}\n`, { mode: 0o600, flag: "wx" });
  }
  chmodSync(path, 0o600);
  return readFileSync(path, "utf8").trim();
}

/**
 * Returns the key that encrypts, followed by those of SECRET_KEY_PREVIOUS, which only decrypt. @throws as
 * `loadSecretKey`
 */
export function loadSecretKeys(
  config: Pick<Config, "secretKey" | "previousSecretKeys" | "dataDir" | "isProduction">,
): [string, ...string[]] {
  return [loadSecretKey(config), ...config.previousSecretKeys];
}

function keyId(key: string): string {
  return createHash("sha256").update(Buffer.from(key, "base64")).digest("base64url").slice(0, 8);
}

/**
 * Keys derived from SECRET_KEY, one per purpose, so that a signature for one purpose is invalid for another, and
 * unrelated to what SECRET_KEY encrypts. The key of the current SECRET_KEY is first, then those of previous ones.
 */
export function derivedKeys(config: Parameters<typeof loadSecretKeys>[0], purpose: string): string[] {
  return loadSecretKeys(config).map((key) =>
    createHmac("sha256", Buffer.from(key, "base64")).update(purpose).digest("base64"),
  );
}

/** The same keys, each with a number that stays its own, for encryption that stores which key it used. */
export function numberedKeys(
  config: Parameters<typeof loadSecretKeys>[0],
  purpose: string,
): { version: number; value: string }[] {
  const keys = [...new Set(derivedKeys(config, purpose))];
  return keys.map((value) => ({ version: numberOf(value), value }));
}

/** 48 bits of the key's hash: as many as a number holds exactly. */
function numberOf(key: string): number {
  return Number.parseInt(createHash("sha256").update(key).digest("hex").slice(0, 12), 16);
}
