/**
 * What a process holds of all keys, and its lease: permits may be used for LEASE_MS after the last heartbeat that the control
 * plane has answered.
 *
 * I4. A process whose lease has run out begins a new session, in which it holds nothing; what it held before lapses. A proxy
 * goes on serving clients meanwhile, with `owed` permits of every base: those that it held, and others when its silence must
 * have been noticed and all other processes have heard of it, or have lost their leases. What arrives late does no harm,
 * because it names the session.
 */
import { BasetideError } from "../errors";
import { BaseQueue, LONGEST_MARGIN_MS } from "./base-queue";
import type { QuotaClock } from "./clock";
import type { PermitMessage, PermitSet, Trade } from "./permit-set";
import { UserQueue } from "./user-queue";

/** `quota_lease_ms` has the same. */
const LEASE_MS = 1500;

export interface HeartbeatCall {
  name: string;
  session: string;
  isProxy: boolean;
  /** The control plane's time when this was sent, at the latest; null if unknown. */
  seen: number | null;
  /** What it uses while it hears nothing, and whether it has done that. */
  owed: number;
  usesOwed: boolean;
}

export interface HeartbeatAnswer {
  asked_at: number;
  epoch: number;
  owed: number;
  silent: number;
}

/** The control plane, as a process uses it. All calls throw BasetideError `control_unavailable`. */
export interface Plane {
  heartbeat(call: HeartbeatCall): Promise<HeartbeatAnswer>;
  trade(session: string, trade: Trade): Promise<PermitMessage>;
  /**
   * Receives messages that others cause, until the returned function is called: on the connection of the heartbeats, so that
   * a process that hears nothing has no lease.
   *
   * @param onLost called when the connection has ended
   */
  listen(
    session: string,
    onMessage: (message: PermitMessage) => void,
    onLost: () => void,
  ): Promise<() => void>;
  leave(session: string): Promise<void>;
}

export interface KeyLimits {
  requestsPerWindow: number;
  slowedPerWindow: number;
  userRequestsPerWindow: number;
  windowMs: number;
}

export class PermitHolder {
  readonly clock: QuotaClock;
  readonly isProxy: boolean;
  readonly #plane: Plane;
  readonly #name: string | undefined;
  readonly #limitsOf: (key: string) => KeyLimits;
  readonly #queues = new Map<string, BaseQueue>();
  readonly #users = new Map<string, UserQueue>();
  #session = "";
  #state: "ended" | "joining" | "connected" | "away" = "ended";
  #epoch = 0;
  #owed = 0;
  #silent = 0;
  #isClosed = false;
  #lives = 0;
  /** When the last heartbeat that was answered was sent, and the control plane's time in its answer, with when it arrived. */
  #sentAt = -Infinity;
  #heard: { at: number; askedAt: number } | undefined;
  #stopListening = () => {};
  #cancelAlarm = () => {};
  #beating: Promise<void> | undefined;

  /** @param name of a process that serves clients without the control plane; the same after a restart */
  constructor(plane: Plane, clock: QuotaClock, limitsOf: (key: string) => KeyLimits, name?: string) {
    this.#plane = plane;
    this.clock = clock;
    this.#limitsOf = limitsOf;
    this.#name = name;
    this.isProxy = name !== undefined;
    if (this.isProxy) this.#beat();
  }

  get session(): string {
    return this.#session;
  }

  /** How many of each base's permits, those with the highest numbers, are left to silent proxies. */
  get silent(): number {
    return this.#silent;
  }

  /** Whether permits may be traded; else it uses what it holds or is owed. */
  get isConnected(): boolean {
    return this.#state === "connected" && this.clock.now() - this.#sentAt < LEASE_MS;
  }

  /** When the last heartbeat that was answered was sent, ms on the clock. */
  get heardAt(): number {
    return this.#sentAt;
  }

  /** Returns a number under which nothing was granted to this process. */
  newLife(): number {
    return ++this.#lives;
  }

  /** Whether permits may be used. */
  isValid(): boolean {
    if (this.#state === "connected" && !this.isConnected) this.#lapse();
    return this.#state === "connected" || (this.#state === "away" && this.#owed > 0);
  }

  /** Returns the queue of a base, and begins a session if there is none. */
  queue(key: string): BaseQueue {
    const queue = this.#queues.getOrInsertComputed(key, () => {
      const made = new BaseQueue(this, key, this.#limitsOf(key));
      if (this.#state === "away") made.lapse(this.#owed, this.#owedFrom(key));
      return made;
    });
    if (this.#state === "ended" && !this.#beating) this.#beat();
    return queue;
  }

  user(key: string): UserQueue {
    const { userRequestsPerWindow } = this.#limitsOf(key);
    return this.#users.getOrInsertComputed(key, () => new UserQueue(this, key, userRequestsPerWindow, null));
  }

  /** @throws BasetideError `control_unavailable` */
  async trade(trade: Trade): Promise<PermitMessage> {
    const session = this.#session;
    const message = await this.#plane.trade(session, trade);
    if (session !== this.#session) throw new BasetideError("control_unavailable");
    return message;
  }

  /** Ends the session; what is held may be used by others. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelAlarm();
    await this.#beating;
    await this.#end();
  }

  #sets(): PermitSet[] {
    return [...this.#queues.values(), ...this.#users.values()];
  }

  #owedFrom(key: string): number {
    const { windowMs } = this.#limitsOf(key);
    // Its silence is noticed after a lease; others may have heard nothing of it for another, and have stood still for a third.
    return this.#sentAt + 3 * LEASE_MS + windowMs + LONGEST_MARGIN_MS;
  }

  #lapse(): void {
    this.#state = "away";
    // Whatever is still on its way grants nothing.
    this.#session = "";
    this.#stopListening();
    for (const set of this.#sets()) set.lapse(this.#owed, this.#owedFrom(set.key));
    this.#fail(new BasetideError("control_unavailable"));
  }

  /** Fails what cannot go on without the control plane; the rest goes on. */
  #fail(error: unknown): void {
    for (const queue of this.#queues.values()) queue.fail(error, this.#owed === 0);
  }

  #beat(): void {
    this.#cancelAlarm();
    const from = this.clock.now();
    this.#beating = this.#beatOnce()
      .catch((error) => {
        if (!this.isConnected) this.#fail(error);
      })
      .finally(() => {
        this.#dropIdle();
        this.#beating = undefined;
        if (this.#isClosed) return;
        if (!this.isProxy && this.#queues.size === 0) return void this.#end();
        // Without requests, nothing is lost by a lease that ends because a heartbeat was late.
        const thirds = this.#queues.size === 0 ? 2 : 1;
        this.#cancelAlarm = this.clock.at(from + (thirds * LEASE_MS) / 3, () => this.#beat());
      });
  }

  async #beatOnce(): Promise<void> {
    const wasConnected = this.isValid() && this.#state === "connected";
    if (!wasConnected) await this.#join();
    const sentAt = this.clock.now();
    const session = this.#session;
    const { asked_at, epoch, owed, silent } = await this.#plane.heartbeat({
      name: this.#name ?? session,
      session,
      isProxy: this.isProxy,
      seen: this.#heard ? this.#heard.askedAt + (sentAt - this.#heard.at) : null,
      owed: this.#owed,
      usesOwed: this.#state === "away",
    });
    if (session !== this.#session || this.clock.now() - sentAt >= LEASE_MS) return;
    if (wasConnected && epoch !== this.#epoch) return this.#lapse();
    this.#heard = { at: this.clock.now(), askedAt: asked_at };
    this.#sentAt = sentAt;
    this.#owed = owed;
    this.#epoch = epoch;
    const isChanged = !wasConnected || silent !== this.#silent;
    this.#silent = silent;
    if (!wasConnected) {
      this.#state = "connected";
      for (const set of this.#sets()) set.renew();
    }
    if (isChanged) for (const queue of this.#queues.values()) queue.work();
  }

  /** Begins to listen under a new name; the session begins with its first heartbeat. */
  async #join(): Promise<void> {
    if (this.#state === "ended") this.#state = "joining";
    this.#stopListening();
    const session = `quota_${crypto.randomUUID().replaceAll("-", "")}`;
    this.#session = session;
    const take = (message: PermitMessage) => {
      if (session !== this.#session) return;
      (this.#queues.get(message.key) ?? this.#users.get(message.key))?.take(message);
    };
    const onLost = () => {
      if (session === this.#session && this.#state === "connected") this.#lapse();
    };
    this.#stopListening = await this.#plane.listen(session, take, onLost);
  }

  #dropIdle(): void {
    for (const held of [this.#queues, this.#users])
      for (const [key, { isIdle }] of held) if (isIdle) held.delete(key);
  }

  async #end(): Promise<void> {
    const isKnown = this.#state === "connected";
    this.#state = "ended";
    this.#stopListening();
    for (const queue of this.#queues.values()) queue.fail(new BasetideError("control_unavailable"), true);
    if (isKnown) await this.#plane.leave(this.#session).catch(() => {});
  }
}
