/** Writes that are sent to the source as one request. */
import { proxied } from "../../../core/source";
import type { UpstreamRequest } from "../upstream";
import type { SentWrite } from "../write";
import type { SingleWrite } from "./single-write";

/**
 * What becomes of a member: the source's answer to its write; the proxy's own answer, with its text; `alone`: its
 * request has to be sent by itself; `aborted`: its client has disconnected.
 */
export type BatchOutcome = SentWrite | { refusal: Response; text: string } | "alone" | "aborted";

export interface BatchMember {
  request: UpstreamRequest;
  write: SingleWrite;
  resolve(outcome: BatchOutcome): void;
  reject(error: unknown): void;
}

export class WriteBatch {
  readonly #over = new AbortController();
  readonly #filled = Promise.withResolvers<void>();
  #members: readonly BatchMember[];
  #isClosed = false;

  constructor(members: readonly BatchMember[] = []) {
    this.#members = members;
  }

  /** Aborts if every client disconnects before the batch is sent. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  get members(): readonly BatchMember[] {
    return this.#members;
  }

  /** May others join? */
  get isOpen(): boolean {
    return !this.#isClosed && !this.signal.aborted && this.#members.length < proxied.limits.writeSize;
  }

  join(member: BatchMember): void {
    this.#members = [...this.#members, member];
    if (this.#members.length === proxied.limits.writeSize) this.#filled.resolve();
  }

  /** @returns false if the member's write may be on its way, and will be completed */
  leave(member: BatchMember): boolean {
    if (this.#isClosed) return false;
    // The last one stays: the batch may have been granted its permit in this moment.
    if (this.#members.length > 1) this.#members = this.#members.filter((other) => other !== member);
    else this.#over.abort();
    return true;
  }

  /** Resolves when no other member fits in, after `ms` at the latest. */
  async filledWithin(ms: number): Promise<void> {
    const timer = setTimeout(this.#filled.resolve, ms);
    await this.#filled.promise;
    clearTimeout(timer);
  }

  /** From now on no member joins or leaves. */
  close(): void {
    this.#isClosed = true;
  }

  /** Closes the batch, and returns the request for all members. */
  compose(): UpstreamRequest {
    this.close();
    const [first] = this.#members as [BatchMember];
    if (this.#members.length === 1) return first.request;
    const items = this.#members.map(({ write }) => write.item).join(",");
    const headers = new Map(first.request.headers);
    headers.set("accept-encoding", "identity");
    const body = new TextEncoder().encode(`{"records":[${items}],${first.write.options}`);
    return { ...first.request, path: first.write.path, headers, body };
  }
}
