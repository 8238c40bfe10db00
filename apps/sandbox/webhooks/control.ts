/**
 * Manipulates webhooks for tests, without their owners' knowledge.
 */
import { ControlError } from "../errors";
import type { SandboxBase } from "../model";
import type { Sandbox } from "../sandbox";
import { shownHook } from "./calls";
import type { PingEntry } from "./notifications";
import type { SandboxWebhook } from "./webhook";

const ERROR_CODES = ["INVALID_HOOK", "INVALID_FILTERS", "INTERNAL_ERROR"];

interface ShownHook extends Record<string, unknown> {
  id: string;
  cursorForNextPayload: number;
  isHookEnabled: boolean;
  isSilent: boolean;
}

export class WebhookControl {
  readonly #sandbox: Sandbox;

  constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox;
  }

  /** Every webhook of a base as the API lists it, and whether it was silenced. */
  list(baseId: string): ShownHook[] {
    const base = this.#base(baseId);
    const nowMs = this.#sandbox.store.now();
    return this.#sandbox.webhooks
      .of(base)
      .map((hook) => ({ ...shownHook(hook, nowMs), isSilent: hook.isSilent }) as ShownHook);
  }

  /** Deletes it, as another user with the right to do so would. */
  delete(baseId: string, hookId: string): void {
    const base = this.#base(baseId);
    this.#sandbox.webhooks.delete(base, this.#hook(base, hookId));
  }

  /** The webhook makes no more payloads but looks unchanged, or resumes; changes in between are never reported. */
  silence(baseId: string, hookId: string, isSilent = true): void {
    this.#hook(this.#base(baseId), hookId).isSilent = isSilent;
  }

  /** Adds an error payload: `INVALID_HOOK` and `INVALID_FILTERS` also disable the webhook. */
  fail(baseId: string, hookId: string, code: string): void {
    if (!ERROR_CODES.includes(code))
      throw new ControlError(`There is no error payload "${code}". Use one of: ${ERROR_CODES.join(", ")}.`);
    const base = this.#base(baseId);
    this.#sandbox.webhooks.fail(base, this.#hook(base, hookId), code);
  }

  /** Every attempt to deliver a notification, oldest first. */
  pings(baseId?: string): PingEntry[] {
    return this.#sandbox.webhooks.pings.entries(baseId);
  }

  #base(baseId: string): SandboxBase {
    const base = this.#sandbox.store.bases.get(baseId);
    if (base) return base;
    throw new ControlError(`There is no base ${baseId}. Load, generate or create one first.`);
  }

  #hook(base: SandboxBase, hookId: string): SandboxWebhook {
    const hook = this.#sandbox.webhooks.find(base, hookId);
    if (hook) return hook;
    throw new ControlError(`The base "${base.name}" has no webhook ${hookId}.`);
  }
}
