/**
 * One webhook: its life and its payloads.
 *
 * N1. Payload numbers are consecutive from 1; dropping old payloads leaves no gap among the rest.
 * N2. A payload can be listed from its time on, in the order of numbers: none overtakes another.
 */
import type { Payload } from "./payload-writer";
import type { Specification } from "./specification";

const DAY_MS = 24 * 3600 * 1000;
/** How long a webhook lives without being refreshed or listed, and how long a payload is stored. */
const LIFE_MS = 7 * DAY_MS;
/** How long an expired webhook can still be read. */
const GRACE_MS = 7 * DAY_MS;

interface NotificationResult {
  success: boolean;
  completionTimestamp: string;
  durationMs: number;
  retryNumber: number;
  error?: { message: string };
  willBeRetried?: boolean;
}

interface Stored {
  number: number;
  /** On the sandbox's clock. */
  madeMs: number;
  availableMs: number;
  payload: Payload;
}

/** Payloads as an answer returns them. */
interface Listed {
  payloads: Payload[];
  /** The number to ask for next. */
  cursor: number;
  mightHaveMore: boolean;
}

export class SandboxWebhook {
  readonly id: string;
  readonly specification: Specification;
  readonly notificationUrl: string | null;
  readonly secret: Uint8Array;
  /** The integration that created it, which alone sees it; absent for webhooks of personal tokens. */
  readonly owner: string | undefined;
  isEnabled = true;
  areNotificationsEnabled = true;
  /** Makes no more payloads, without reporting it. */
  isSilent = false;
  isDeleted = false;
  expiresMs: number;
  lastResult: NotificationResult | null = null;
  lastSuccessMs: number | null = null;
  /**
   * The notification that is due, being sent or waiting for its retry, and when another is due; owned by
   * `notifications.ts`.
   */
  ping: { dueMs: number; isSending: boolean; nextMs: number | undefined } | undefined;
  #stored: Stored[] = [];
  #nextNumber = 1;

  constructor(
    given: Pick<SandboxWebhook, "id" | "specification" | "notificationUrl" | "secret" | "owner">,
    nowMs: number,
  ) {
    this.id = given.id;
    this.specification = given.specification;
    this.notificationUrl = given.notificationUrl;
    this.secret = given.secret;
    this.owner = given.owner;
    this.expiresMs = nowMs + LIFE_MS;
  }

  /** Applies what is due by now: expiry, the end, the deletion of old payloads. */
  age(nowMs: number): void {
    if (nowMs >= this.expiresMs) this.isEnabled = false;
    if (nowMs >= this.expiresMs + GRACE_MS) this.isDeleted = true;
    const kept = this.#stored.findIndex((stored) => stored.madeMs > nowMs - LIFE_MS);
    if (kept !== 0) this.#stored = kept < 0 ? [] : this.#stored.slice(kept);
  }

  /** Seven days from now, if it is still active. */
  extend(nowMs: number): void {
    if (this.isEnabled) this.expiresMs = nowMs + LIFE_MS;
  }

  add(payload: Payload, nowMs: number, availableMs: number): void {
    this.#stored.push({ number: this.#nextNumber++, madeMs: nowMs, availableMs, payload });
  }

  /** The number of the next payload to become available. */
  cursor(nowMs: number): number {
    const waiting = this.#stored.find((stored) => stored.availableMs > nowMs);
    return waiting?.number ?? this.#nextNumber;
  }

  /** The oldest payload that a cursor can still get. */
  get oldestNumber(): number {
    return this.#stored[0]?.number ?? this.#nextNumber;
  }

  /** Payloads from number `cursor` on, or from the oldest stored one. */
  list(cursor: number, limit: number, nowMs: number): Listed {
    const end = this.cursor(nowMs);
    const from = Math.max(cursor, this.oldestNumber);
    if (from >= end) return { payloads: [], cursor: Math.max(from, cursor), mightHaveMore: false };
    const start = from - this.oldestNumber;
    const until = Math.min(end, from + limit);
    const payloads = this.#stored.slice(start, start + until - from).map((stored) => stored.payload);
    return { payloads, cursor: until, mightHaveMore: until < end };
  }
}
