/**
 * The webhooks of every base: creates them, passes each change to them, and ends them.
 *
 * B1. A webhook's payloads are made at the moment of the change, so their cells are those of that moment, whenever they
 *     are listed.
 */
import { randomBytes } from "node:crypto";
import type { AccessKey } from "../auth";
import { fieldById, type SandboxBase } from "../model";
import type { Sandbox } from "../sandbox";
import { DEFAULT_USER, type StoreChange } from "../store";
import { ComputedChanges } from "./computed-changes";
import { Notifications } from "./notifications";
import { headOf, payloadsFor } from "./payload";
import type { Payload } from "./payload-writer";
import { changeSetOf } from "./recorded-changes";
import type { Specification } from "./specification";
import { SandboxWebhook } from "./webhook";

/** Codes of error payloads that mean that the webhook was switched off. */
const ENDING_CODES = new Set(["INVALID_HOOK", "INVALID_FILTERS"]);

export class Webhooks {
  readonly pings: Notifications;
  readonly #sandbox: Sandbox;
  readonly #computedChanges: ComputedChanges;
  /** Keyed by the base itself and not its id: a deleted base takes its webhooks along. */
  #hooks = new WeakMap<SandboxBase, SandboxWebhook[]>();

  constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox;
    this.#computedChanges = new ComputedChanges(sandbox.computed);
    this.pings = new Notifications(sandbox);
    sandbox.store.onChange((change) => this.#heard(change));
  }

  create(
    base: SandboxBase,
    key: AccessKey,
    specification: Specification,
    notificationUrl: string | null,
  ): SandboxWebhook {
    const { store } = this.#sandbox;
    const id = store.random.id("ach");
    const owner = ownerOf(key);
    const hook = new SandboxWebhook(
      { id, specification, notificationUrl, secret: randomBytes(32), owner },
      store.now(),
    );
    this.#hooks.set(base, [...this.of(base), hook]);
    return hook;
  }

  /** The base's webhooks as of now. */
  of(base: SandboxBase): SandboxWebhook[] {
    const hooks = this.#hooks.get(base);
    if (!hooks) return [];
    const nowMs = this.#sandbox.store.now();
    for (const hook of hooks) hook.age(nowMs);
    const left = hooks.filter((hook) => !hook.isDeleted);
    if (left.length < hooks.length) this.#hooks.set(base, left);
    return left;
  }

  find(base: SandboxBase, id: string): SandboxWebhook | undefined {
    return this.of(base).find((hook) => hook.id === id);
  }

  delete(base: SandboxBase, hook: SandboxWebhook): void {
    hook.isDeleted = true;
    this.of(base);
  }

  /** Adds an error payload; those that mean an invalid webhook also switch it off. */
  fail(base: SandboxBase, hook: SandboxWebhook, code: string): void {
    const timestampMs = this.#sandbox.store.now();
    const { transactionNumber } = base;
    const head = headOf(base, {
      baseId: base.id,
      source: "system",
      user: DEFAULT_USER,
      timestampMs,
      transactionNumber,
      events: [],
    });
    this.#publish(base, hook, [{ ...head, error: true, code }]);
    if (ENDING_CODES.has(code)) hook.isEnabled = false;
  }

  /** Call it after the sandbox's clock was changed. */
  clockMoved(): void {
    this.pings.clockMoved();
  }

  clear(): void {
    this.#hooks = new WeakMap();
    this.pings.clear();
  }

  #heard(change: StoreChange): void {
    const base = this.#sandbox.store.bases.get(change.baseId);
    if (!base) return;
    const hooks = this.of(base).filter((hook) => hook.isEnabled && !hook.isSilent);
    const isEmitting = this.#sandbox.settings.webhooks.computedCells === "emitted";
    if (hooks.length === 0 || !isEmitting) this.#computedChanges.forget(base);
    if (hooks.length === 0) return;
    const set = changeSetOf(base, change);
    if (isEmitting) this.#computedChanges.add(base, set);
    for (const hook of hooks) {
      this.#publish(base, hook, payloadsFor(this.#sandbox, base, change, set, hook.specification));
      this.#checkFilters(base, hook, change);
    }
  }

  #publish(base: SandboxBase, hook: SandboxWebhook, payloads: Payload[]): void {
    if (payloads.length === 0) return;
    const nowMs = this.#sandbox.store.now();
    const availableMs = nowMs + this.#sandbox.settings.webhooks.payloadDelayMs;
    for (const payload of payloads) hook.add(payload, nowMs, availableMs);
    this.pings.want(base, hook, availableMs);
  }

  /** A webhook that watches a deleted field goes silent; one whose table was deleted reports it. */
  #checkFilters(base: SandboxBase, hook: SandboxWebhook, change: StoreChange): void {
    const { filters, includes } = hook.specification.options;
    const { recordChangeScope: scope, watchDataInFieldIds = [], watchSchemasOfFieldIds = [] } = filters;
    const included = includes?.includeCellValuesInFieldIds;
    const fieldIds = [...watchDataInFieldIds, ...watchSchemasOfFieldIds];
    if (Array.isArray(included)) fieldIds.push(...included);
    const tables = [...base.tables.values()];
    if (fieldIds.some((id) => !tables.some((table) => fieldById(table, id)))) hook.isSilent = true;
    else if (change.events.some((event) => event.kind === "table_deleted" && event.tableId === scope))
      this.fail(base, hook, "INVALID_FILTERS");
  }
}

/** OAuth tokens belong to an integration, which sees only its own webhooks. */
export function ownerOf(key: AccessKey): string | undefined {
  return key.isOAuth ? key.tokenId : undefined;
}
