/**
 * The server's side of SCRAM-SHA-256 (RFC 5802, RFC 7677), as Postgres clients speak it: neither side learns the secret
 * of the other, and both prove that they know it.
 */
import { pbkdf2Sync, randomBytes, timingSafeEqual } from "node:crypto";
import { SCRAM_ITERATIONS, SCRAM_KEY_BYTES, scramKeys } from "../../../core/scram";

interface Proof {
  /** The last message to the client. */
  final: string;
}

export interface ScramExchange {
  /** The answer to the client's first message. */
  challenge: string;
  /** Returns undefined if the client does not know the secret. @param text its second message */
  finish(text: string): Proof | undefined;
}

/**
 * @param first the client's first message
 * @returns undefined if it is malformed
 */
export function beginScram(first: string, secret: string): ScramExchange | undefined {
  const [, header, bare, clientNonce] =
    /^([ny],,)(n=[^,]*,r=([\x21-\x2b\x2d-\x7e]{1,200}))$/.exec(first) ?? [];
  if (header === undefined || bare === undefined || clientNonce === undefined) return undefined;
  const salt = randomBytes(16);
  const nonce = clientNonce + randomBytes(18).toString("base64");
  const challenge = `r=${nonce},s=${salt.toString("base64")},i=${SCRAM_ITERATIONS}`;
  return {
    challenge,
    finish(text) {
      const [, withoutProof, binding, theirs, proof] =
        /^(c=([A-Za-z0-9+/=]{1,100}),r=([\x21-\x2b\x2d-\x7e]{1,300})),p=([A-Za-z0-9+/=]{1,100})$/.exec(
          text,
        ) ?? [];
      if (withoutProof === undefined || theirs !== nonce) return undefined;
      if (Buffer.from(binding!, "base64").toString() !== header) return undefined;
      const salted = pbkdf2Sync(secret, salt, SCRAM_ITERATIONS, SCRAM_KEY_BYTES, "sha256");
      const { proofOf, signatureOf } = scramKeys(salted);
      const signed = `${bare},${challenge},${withoutProof}`;
      const expected = proofOf(signed);
      const given = Buffer.from(proof!, "base64");
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
      return { final: `v=${signatureOf(signed).toString("base64")}` };
    },
  };
}
