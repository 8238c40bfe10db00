/**
 * Sends notifications: a short signed POST that says that a webhook has payloads.
 *
 * G1. Only loopback addresses are ever called, and no redirect is followed; for any other target, the notification
 *     fails.
 * G2. A webhook has at most one notification under way. It covers what happens meanwhile, or one more follows it.
 */
import { createHmac } from "node:crypto";
import type { SandboxBase } from "../model";
import { Random } from "../random";
import type { Sandbox } from "../sandbox";
import { Schedule } from "./schedule";
import type { SandboxWebhook } from "./webhook";

/** Beyond this many, older entries of the record of notifications are dropped. */
const MAX_ENTRIES = 10_000;

/** One attempt to deliver a notification, as the control API shows it. */
export interface PingEntry {
  baseId: string;
  webhookId: string;
  url: string;
  timestamp: string;
  retryNumber: number;
  /** `lost`: never sent, by the setting `pingLoss`; the webhook does not know. */
  outcome: "delivered" | "failed" | "lost";
  message?: string;
}

export class Notifications {
  readonly #sandbox: Sandbox;
  readonly #schedule: Schedule;
  #random = new Random(1);
  #entries: PingEntry[] = [];
  #stopping = new AbortController();

  constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox;
    this.#schedule = new Schedule(() => sandbox.store.now());
  }

  /** The webhook has payloads that can be listed from `availableMs` on. */
  want(base: SandboxBase, hook: SandboxWebhook, availableMs: number): void {
    if (hook.notificationUrl === null || !hook.areNotificationsEnabled) return;
    const dueMs = availableMs + this.#sandbox.settings.webhooks.pingDelayMs;
    const { ping } = hook;
    if (!ping) this.#plan(base, hook, dueMs, 0);
    else if (ping.isSending || ping.dueMs < dueMs) ping.nextMs = Math.max(ping.nextMs ?? 0, dueMs);
  }

  clockMoved(): void {
    this.#schedule.clockMoved();
  }

  entries(baseId?: string): PingEntry[] {
    return this.#entries.filter((entry) => baseId === undefined || entry.baseId === baseId);
  }

  clear(): void {
    this.#stopping.abort();
    this.#stopping = new AbortController();
    this.#schedule.clear();
    this.#entries = [];
    this.#random = new Random(1);
  }

  #plan(base: SandboxBase, hook: SandboxWebhook, dueMs: number, retryNumber: number): void {
    hook.ping = { dueMs, isSending: false, nextMs: hook.ping?.nextMs };
    this.#schedule.at(dueMs, () => void this.#send(base, hook, retryNumber));
  }

  async #send(base: SandboxBase, hook: SandboxWebhook, retryNumber: number): Promise<void> {
    const { store, settings } = this.#sandbox;
    const { pingLoss, pingDuplication, pingMaxRetries, pingRetryMs } = settings.webhooks;
    const { ping } = hook;
    hook.age(store.now());
    if (hook.isDeleted || !hook.areNotificationsEnabled || !ping) {
      hook.ping = undefined;
      return;
    }
    if (this.#random.chance(pingLoss)) {
      this.#note(base, hook, retryNumber, "lost");
      this.#finish(base, hook);
      return;
    }
    ping.isSending = true;
    const signal = this.#stopping.signal;
    const beganMs = performance.now();
    const isTwice = this.#random.chance(pingDuplication);
    const tries = Array.from({ length: isTwice ? 2 : 1 }, () => this.#post(base, hook, signal));
    const [failure] = await Promise.all(tries);
    if (signal.aborted) return;
    const willBeRetried = failure !== undefined && retryNumber < pingMaxRetries;
    hook.lastResult = {
      success: failure === undefined,
      completionTimestamp: new Date(store.now()).toISOString(),
      durationMs: Math.round((performance.now() - beganMs) * 1000) / 1000,
      retryNumber,
      ...(failure !== undefined && { error: { message: failure }, willBeRetried }),
    };
    for (const _ of tries)
      this.#note(base, hook, retryNumber, failure === undefined ? "delivered" : "failed", failure);
    if (willBeRetried) {
      this.#plan(base, hook, store.now() + pingRetryMs * 2 ** retryNumber, retryNumber + 1);
      return;
    }
    if (failure === undefined) hook.lastSuccessMs = store.now();
    else hook.areNotificationsEnabled = false;
    this.#finish(base, hook);
  }

  /** The notification is done; payloads that it did not cover get their own. */
  #finish(base: SandboxBase, hook: SandboxWebhook): void {
    const nextMs = hook.ping?.nextMs;
    hook.ping = undefined;
    if (nextMs !== undefined && hook.areNotificationsEnabled) this.#plan(base, hook, nextMs, 0);
  }

  /** @returns why it failed */
  async #post(base: SandboxBase, hook: SandboxWebhook, stopping: AbortSignal): Promise<string | undefined> {
    const url = hook.notificationUrl!;
    if (!isLoopback(url)) return "The sandbox calls loopback addresses only";
    const timestamp = new Date(this.#sandbox.store.now()).toISOString();
    const body = JSON.stringify({ base: { id: base.id }, webhook: { id: hook.id }, timestamp });
    const mac = createHmac("sha256", hook.secret).update(body).digest("hex");
    try {
      const response = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json", "x-airtable-content-mac": `hmac-sha256=${mac}` },
        body,
        redirect: "manual",
        signal: AbortSignal.any([
          stopping,
          AbortSignal.timeout(this.#sandbox.settings.webhooks.pingTimeoutMs),
        ]),
      });
      await response.body?.cancel();
      if (response.status === 200 || response.status === 204) return undefined;
      return `The HTTP request returned a ${response.status} status code instead of 200 or 204`;
    } catch (error) {
      return `The HTTP request failed: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  #note(
    base: SandboxBase,
    hook: SandboxWebhook,
    retryNumber: number,
    outcome: PingEntry["outcome"],
    message?: string,
  ): void {
    this.#entries.push({
      baseId: base.id,
      webhookId: hook.id,
      url: hook.notificationUrl!,
      timestamp: new Date(this.#sandbox.store.now()).toISOString(),
      retryNumber,
      outcome,
      ...(message !== undefined && { message }),
    });
    if (this.#entries.length > MAX_ENTRIES * 1.1) this.#entries = this.#entries.slice(-MAX_ENTRIES);
  }
}

function isLoopback(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  const isHttp = protocol === "http:" || protocol === "https:";
  return isHttp && (hostname === "localhost" || hostname === "[::1]" || /^127(\.\d+){3}$/.test(hostname));
}
