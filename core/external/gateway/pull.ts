/** Reads a socket step by step while the two sides alternate, as in a login. */
import type { Duplex } from "node:stream";
import { LOGIN_MESSAGE_BYTES } from "../limits";
import { HEAD_BYTES } from "../messages";
import { GatewayRefusal, Violation } from "./fault";

export class Pull {
  readonly #socket: Duplex;
  #buffer: Buffer = Buffer.alloc(0);
  #wake: (() => void) | undefined;
  #failure: Error | undefined;
  readonly #onData = (chunk: Buffer) => {
    this.#buffer = Buffer.concat([this.#buffer, chunk]);
    if (this.#buffer.length > LOGIN_MESSAGE_BYTES) this.#socket.pause();
    this.#wake?.();
  };
  readonly #onEnd = (error?: Error | boolean) => {
    this.#failure ??=
      error instanceof Error ? error : new GatewayRefusal("CONNECTION_CLOSED", "the connection was closed");
    this.#wake?.();
  };

  constructor(socket: Duplex) {
    this.#socket = socket;
    socket.on("data", this.#onData).on("error", this.#onEnd).on("end", this.#onEnd).on("close", this.#onEnd);
  }

  /** Returns the next message, with its head. */
  async message(): Promise<Buffer> {
    const head = await this.#have(HEAD_BYTES);
    const length = head.readUInt32BE(1);
    if (length < 4 || length > LOGIN_MESSAGE_BYTES) {
      throw new Violation("login", `a message of ${length} bytes before the login is complete`);
    }
    return this.take(length + 1);
  }

  /** Returns the next `count` bytes. */
  async take(count: number): Promise<Buffer> {
    const taken = (await this.#have(count)).subarray(0, count);
    this.#buffer = this.#buffer.subarray(count);
    if (this.#buffer.length <= LOGIN_MESSAGE_BYTES) this.#socket.resume();
    return taken;
  }

  /** Returns the received bytes up to and including `byte`. */
  async takeThrough(byte: number): Promise<Buffer> {
    let at = this.#buffer.indexOf(byte);
    while (at === -1) {
      await this.#have(this.#buffer.length + 1);
      at = this.#buffer.indexOf(byte);
    }
    return this.take(at + 1);
  }

  /** Releases the socket, paused. @returns bytes that were read and not taken */
  release(): Buffer {
    this.#socket.pause();
    this.#socket.off("data", this.#onData).off("error", this.#onEnd);
    this.#socket.off("end", this.#onEnd).off("close", this.#onEnd);
    return this.#buffer;
  }

  async #have(count: number): Promise<Buffer> {
    while (this.#buffer.length < count) {
      if (this.#failure) throw this.#failure;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#buffer;
  }
}
