/** An answer whose body is passed on as it arrives. */
import type { AnswerHead } from "./answer-head";

/** Gets the parts of a body, and then its end or why it broke off. */
export interface BodyReceiver {
  data(piece: Buffer): void;
  end(): void;
  fail(error: unknown): void;
}

const NOTHING: BodyReceiver = { data() {}, end() {}, fail() {} };

/** The connection that an answer arrives on. */
interface AnswerLine {
  pause(): void;
  resume(): void;
  /** Ends the connection if the answer has not ended. */
  destroy(): void;
}

export class StreamedAnswer {
  readonly status: number;
  readonly statusText: string;
  /** Each header as it was sent. */
  readonly lines: AnswerHead["lines"];
  readonly #line: AnswerLine;
  #receiver: BodyReceiver | undefined;
  /** What has arrived without a receiver. */
  #pieces: Buffer[] = [];
  /** How many of those the receiver has got. */
  #given = 0;
  #outcome: { error?: unknown } | undefined;

  constructor({ status, statusText, lines }: AnswerHead, line: AnswerLine) {
    this.status = status;
    this.statusText = statusText;
    this.lines = lines;
    this.#line = line;
  }

  /**
   * Passes what has arrived on to `receiver` at once, and everything else as it arrives; replaces an earlier one, also while
   * that one gets what has arrived.
   */
  receive(receiver: BodyReceiver): void {
    this.#receiver = receiver;
    while (this.#receiver === receiver && this.#given < this.#pieces.length)
      receiver.data(this.#pieces[this.#given++]!);
    if (this.#receiver !== receiver) return;
    this.#pieces = [];
    this.#given = 0;
    if (this.#outcome) this.#report(this.#outcome);
  }

  /** Reads the body and drops it, so that the connection can be used again. */
  discard(): void {
    this.receive(NOTHING);
  }

  /** Returns the whole body. @throws the error that ended the connection */
  bytes(): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const pieces: Buffer[] = [];
      this.receive({
        data: (piece) => void pieces.push(piece),
        end: () => resolve(pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)),
        fail: reject,
      });
    });
  }

  /** Lets nothing more arrive until `resume`, except for what has arrived already. */
  pause(): void {
    if (!this.#outcome) this.#line.pause();
  }

  resume(): void {
    if (!this.#outcome) this.#line.resume();
  }

  /** The rest of the body is not wanted; the receiver gets nothing more. */
  destroy(): void {
    if (this.#outcome) return;
    this.#receiver = NOTHING;
    this.#line.destroy();
  }

  /** For the connection. */
  push(piece: Buffer): void {
    if (this.#receiver) this.#receiver.data(piece);
    else this.#pieces.push(piece);
  }

  /** For the connection. @param outcome why the body broke off, if it did */
  finish(outcome: { error?: unknown }): void {
    this.#outcome = outcome;
    this.#report(outcome);
  }

  #report(outcome: { error?: unknown }): void {
    if (!this.#receiver) return;
    if ("error" in outcome) this.#receiver.fail(outcome.error);
    else this.#receiver.end();
  }
}
