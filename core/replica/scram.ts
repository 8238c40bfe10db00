/**
 * Passwords as Postgres keeps them (RFC 5803). What is written into a statement may end in the server's log, its
 * statistics or an error; this opens nothing there.
 */
import { createHash, createHmac, pbkdf2Sync, randomBytes } from "node:crypto";

/** Postgres' own number; our passwords are random, and no number of rounds would make them safer. */
const ITERATIONS = 4096;
const SALT_BYTES = 16;
const KEY_BYTES = 32;

/** For `… password '…'`. @param password printable ASCII: nothing that SASLprep would change */
export function scramVerifier(password: string, salt: Buffer = randomBytes(SALT_BYTES)): string {
  const salted = pbkdf2Sync(password, salt, ITERATIONS, KEY_BYTES, "sha256");
  const storedKey = createHash("sha256").update(hmac(salted, "Client Key")).digest("base64");
  const serverKey = hmac(salted, "Server Key").toString("base64");
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString("base64")}$${storedKey}:${serverKey}`;
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
