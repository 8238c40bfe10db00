/** What both sides of SCRAM-SHA-256 compute (RFC 5802, RFC 7677), and what Postgres stores of a password (RFC 5803). */
import { createHash, createHmac } from "node:crypto";

export const SCRAM_MECHANISM = "SCRAM-SHA-256";
/** Postgres' own number, and the least that RFC 7677 allows. Our secrets are random: more would not make them safer. */
export const SCRAM_ITERATIONS = 4096;
/** Of the salted password, and of what is derived from it. */
export const SCRAM_KEY_BYTES = 32;

export function scramKeys(salted: Buffer) {
  const clientKey = hmac(salted, "Client Key");
  const storedKey = createHash("sha256").update(clientKey).digest();
  const serverKey = hmac(salted, "Server Key");
  return {
    storedKey,
    serverKey,
    /** The client's proof that it knows the password, for this exchange. */
    proofOf: (exchanged: string) => xor(clientKey, hmac(storedKey, exchanged)),
    /** The server's proof that it knows it. */
    signatureOf: (exchanged: string) => hmac(serverKey, exchanged),
  };
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}

function xor(one: Buffer, other: Buffer): Buffer {
  return Buffer.from(one.map((byte, at) => byte ^ other[at]!));
}
