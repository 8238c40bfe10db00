/**
 * The API's webhook calls: `/v0/bases/{base}/webhooks…`.
 */
import { type AccessKey, authorize, type PermissionLevel } from "../auth";
import { absent, invalidRequest, permissionsOrModelNotFound, unroutable } from "../errors";
import type { SandboxBase } from "../model";
import { isSandboxId } from "../random";
import { type ApiAnswer, type ApiRequest, jsonBody, okAnswer } from "../request";
import type { Sandbox } from "../sandbox";
import { readSpecification, type Specification, tooManyHooks } from "./specification";
import type { SandboxWebhook } from "./webhook";
import { ownerOf } from "./webhooks";

const MAX_HOOKS_PER_BASE = 10;
const MAX_HOOKS_PER_INTEGRATION = 2;
/** Payloads in one answer. */
const MAX_PAYLOADS = 50;

/** Answers a request whose path begins with `bases`. @throws ApiError */
export function webhookCall(sandbox: Sandbox, request: ApiRequest): ApiAnswer {
  const { segments, method } = request;
  const [, baseId, noun, hookId, verb] = segments;
  if (!isSandboxId("app", baseId) || noun !== "webhooks" || segments.length > 5) throw unroutable();
  const call = `${method} ${hookId === undefined ? "" : "hook"}${verb === undefined ? "" : `/${verb}`}`;
  const base = (level: PermissionLevel) => openBase(sandbox, request, baseId, level);
  const hook = (opened: SandboxBase) => openHook(sandbox, opened, request, hookId!);
  switch (call) {
    case "GET ":
      return listHooks(sandbox, base("read"), request);
    case "POST ":
      return createHook(sandbox, base("create"), request);
    case "DELETE hook": {
      const opened = base("create");
      sandbox.webhooks.delete(opened, hook(opened));
      return okAnswer({});
    }
    case "POST hook/refresh":
      return refresh(sandbox, hook(base("create")));
    case "POST hook/enableNotifications":
      return enableNotifications(hook(base("create")), request);
    case "GET hook/payloads":
      return listPayloads(sandbox, hook(base("read")), request);
    default:
      throw unroutable();
  }
}

function openBase(
  sandbox: Sandbox,
  request: ApiRequest,
  baseId: string,
  level: PermissionLevel,
): SandboxBase {
  authorize(request.key, "webhook:manage", baseId, level);
  const base = sandbox.store.bases.get(baseId);
  if (!base) throw permissionsOrModelNotFound();
  return base;
}

function openHook(sandbox: Sandbox, base: SandboxBase, request: ApiRequest, id: string): SandboxWebhook {
  if (!isSandboxId("ach", id)) throw unroutable();
  const hook = sandbox.webhooks.find(base, id);
  if (!hook || !isVisible(hook, request.key)) throw absent();
  return hook;
}

function isVisible(hook: SandboxWebhook, key: AccessKey): boolean {
  const owner = ownerOf(key);
  return owner === undefined || hook.owner === owner;
}

/** Watching data requires the right to read it. @throws ApiError 403 */
function authorizeWatching(key: AccessKey, { options }: Specification): void {
  const { dataTypes } = options.filters;
  const isMissing = (scope: string) => !key.scopes.has(scope);
  if (dataTypes.includes("tableData") && isMissing("data.records:read")) throw permissionsOrModelNotFound();
  if (dataTypes.some((type) => type !== "tableData") && isMissing("schema.bases:read"))
    throw permissionsOrModelNotFound();
}

function createHook(sandbox: Sandbox, base: SandboxBase, request: ApiRequest): ApiAnswer {
  const { notificationUrl = null, specification: given } = jsonBody(request);
  const specification = readSpecification(base, given, sandbox.settings.strictQuery);
  if (notificationUrl !== null && !isUrl(notificationUrl)) throw invalidRequest();
  authorizeWatching(request.key, specification);
  const hooks = sandbox.webhooks.of(base);
  const owner = ownerOf(request.key);
  const own = hooks.filter((hook) => owner !== undefined && hook.owner === owner);
  if (hooks.length >= MAX_HOOKS_PER_BASE || own.length >= MAX_HOOKS_PER_INTEGRATION) throw tooManyHooks();
  const hook = sandbox.webhooks.create(base, request.key, specification, notificationUrl);
  return okAnswer({
    id: hook.id,
    macSecretBase64: Buffer.from(hook.secret).toString("base64"),
    expirationTime: iso(hook.expiresMs),
  });
}

function isUrl(value: unknown): value is string {
  return typeof value === "string" && /^https?:\/\//i.test(value) && URL.canParse(value);
}

function listHooks(sandbox: Sandbox, base: SandboxBase, request: ApiRequest): ApiAnswer {
  const hooks = sandbox.webhooks.of(base).filter((hook) => isVisible(hook, request.key));
  return okAnswer({ webhooks: hooks.map((hook) => shownHook(hook, sandbox.store.now())) });
}

/** A webhook as the list shows it. */
export function shownHook(hook: SandboxWebhook, nowMs: number): Record<string, unknown> {
  return {
    id: hook.id,
    specification: hook.specification,
    notificationUrl: hook.notificationUrl,
    cursorForNextPayload: hook.cursor(nowMs),
    isHookEnabled: hook.isEnabled,
    areNotificationsEnabled: hook.areNotificationsEnabled,
    expirationTime: iso(hook.expiresMs),
    lastSuccessfulNotificationTime: hook.lastSuccessMs === null ? null : iso(hook.lastSuccessMs),
    lastNotificationResult: hook.lastResult,
  };
}

/** The reference does not document how the refresh of an inactive webhook is rejected; this is our choice. */
function refresh(sandbox: Sandbox, hook: SandboxWebhook): ApiAnswer {
  if (!hook.isEnabled) throw invalidRequest("Invalid request: the webhook is disabled.");
  hook.extend(sandbox.store.now());
  return okAnswer({ expirationTime: iso(hook.expiresMs) });
}

function enableNotifications(hook: SandboxWebhook, request: ApiRequest): ApiAnswer {
  const { enable } = jsonBody(request);
  if (typeof enable !== "boolean") throw invalidRequest();
  hook.areNotificationsEnabled = enable;
  return okAnswer({});
}

/** Listing extends the life of an active webhook as a refresh does. */
function listPayloads(sandbox: Sandbox, hook: SandboxWebhook, request: ApiRequest): ApiAnswer {
  authorizeWatching(request.key, hook.specification);
  const { strictQuery, webhooks } = sandbox.settings;
  if (strictQuery && request.query.some(([name]) => name !== "cursor" && name !== "limit"))
    throw invalidRequest();
  const given = Object.fromEntries(request.query);
  const cursor = wholeNumber(given.cursor, 1);
  const limit = wholeNumber(given.limit, MAX_PAYLOADS);
  if (limit > MAX_PAYLOADS) throw invalidRequest();
  if (webhooks.oldCursor === "refuse" && cursor < hook.oldestNumber) throw invalidRequest();
  const nowMs = sandbox.store.now();
  hook.extend(nowMs);
  return okAnswer(hook.list(cursor, limit, nowMs));
}

/** @throws ApiError 422 unless it is a whole number from 1 on */
function wholeNumber(text: string | undefined, absentValue: number): number {
  if (text === undefined) return absentValue;
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < 1) throw invalidRequest();
  return value;
}

const iso = (ms: number) => new Date(ms).toISOString();
