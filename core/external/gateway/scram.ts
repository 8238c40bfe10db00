/** The client side of SCRAM-SHA-256 (RFC 5802, RFC 7677), for a server that may be hostile. */
import { pbkdf2, randomBytes, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";
import { SCRAM_KEY_BYTES, scramKeys } from "../../scram";
import { SCRAM_ROUNDS } from "../limits";
import { GatewayRefusal, Violation } from "./fault";

const GS2_HEADER = "n,,";

export class Scram {
  readonly #nonce = randomBytes(18).toString("base64");
  #serverSignature: Buffer = Buffer.alloc(0);
  /** The server's challenge was answered. */
  hasAnswered = false;
  isVerified = false;

  first(): string {
    return `${GS2_HEADER}n=,r=${this.#nonce}`;
  }

  /** Returns the answer to the server's first message. @throws Violation, GatewayRefusal */
  async final(serverFirst: string, password: string): Promise<string> {
    this.hasAnswered = true;
    const match = /^r=([\x21-\x2b\x2d-\x7e]+),s=([A-Za-z0-9+/]+={0,2}),i=([1-9][0-9]{0,9})$/.exec(
      serverFirst,
    );
    const [, nonce = "", salt = "", rounds = ""] = match ?? [];
    if (!match || !nonce.startsWith(this.#nonce) || nonce.length <= this.#nonce.length) {
      throw new Violation("login", "a malformed SCRAM challenge");
    }
    if (Number(rounds) > SCRAM_ROUNDS) {
      throw new GatewayRefusal(
        "08001",
        `the server requests ${rounds} iterations of SCRAM, more than ${SCRAM_ROUNDS}`,
      );
    }
    // Off the event loop: a server that requests many rounds delays only itself.
    const salted = await promisify(pbkdf2)(
      password,
      Buffer.from(salt, "base64"),
      Number(rounds),
      SCRAM_KEY_BYTES,
      "sha256",
    );
    const { proofOf, signatureOf } = scramKeys(salted);
    const withoutProof = `c=${Buffer.from(GS2_HEADER).toString("base64")},r=${nonce}`;
    const exchanged = `n=,r=${this.#nonce},${serverFirst},${withoutProof}`;
    this.#serverSignature = signatureOf(exchanged);
    return `${withoutProof},p=${proofOf(exchanged).toString("base64")}`;
  }

  /** Verifies that the server knows the password, too. @throws Violation */
  verify(serverFinal: string): void {
    const signature = Buffer.from(/^v=([A-Za-z0-9+/]+={0,2})$/.exec(serverFinal)?.[1] ?? "", "base64");
    const isRight =
      signature.length === SCRAM_KEY_BYTES &&
      this.#serverSignature.length === SCRAM_KEY_BYTES &&
      timingSafeEqual(signature, this.#serverSignature);
    if (!isRight) throw new Violation("login", "wrong SCRAM signature");
    this.isVerified = true;
  }
}
