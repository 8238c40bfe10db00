/**
 * Reads the statements of a Postgres client from the bytes that it sends to the server.
 *
 * A prepared statement's text is sent once per connection, and afterwards only its name. The texts are therefore
 * stored, and every Bind is reported with its statement's text.
 */

const PARSE = 0x50;
const BIND = 0x42;
const QUERY = 0x51;
/** Length and code of the packet that opens a connection; only this packet has no type. */
const STARTUP_MIN_BYTES = 8;

export class StatementReader {
  readonly #texts = new Map<string, string>();
  #pending: Buffer = Buffer.alloc(0);
  #isOpen = false;

  /** Reads the next bytes. Returns the text of every statement that they execute. */
  read(bytes: Uint8Array): string[] {
    this.#pending = this.#pending.length > 0 ? Buffer.concat([this.#pending, bytes]) : Buffer.from(bytes);
    const found: string[] = [];
    for (;;) {
      const head = this.#isOpen ? 1 : 0;
      if (this.#pending.length < (this.#isOpen ? 5 : STARTUP_MIN_BYTES)) return found;
      const length = head + this.#pending.readUInt32BE(head);
      if (this.#pending.length < length) return found;
      const message = this.#pending.subarray(0, length);
      this.#pending = this.#pending.subarray(length);
      if (this.#isOpen) found.push(...this.#statementsIn(message));
      this.#isOpen = true;
    }
  }

  #statementsIn(message: Buffer): string[] {
    const texts = message.subarray(5).toString("latin1").split("\0", 3);
    switch (message[0]) {
      case QUERY:
        return [texts[0]!];
      case PARSE:
        this.#texts.set(texts[0]!, texts[1]!);
        return [];
      case BIND:
        return [this.#texts.get(texts[1]!) ?? ""];
      default:
        return [];
    }
  }
}
