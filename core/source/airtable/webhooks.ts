/**
 * Airtable's webhook calls as a change feed.
 */
import { z } from "zod";
import { BasetideError, isBasetideError } from "../../errors";
import type { ChangeFeed, SourceHook } from "../change-feed";
import { parseAnswer } from "./answers";
import type { Request } from "./client";
import { dependentsOf } from "./dependents";
import { readBatch } from "./payloads";
import { check } from "./schema";
import { changesByItself } from "./self-changing";

/** Payloads in one answer; the most that the call gives (its reference, "List webhook payloads"). */
const MAX_PAYLOADS = 50;

/** Everything: rows and cells, fields, tables. */
const SPECIFICATION = {
  options: { filters: { dataTypes: ["tableData", "tableFields", "tableMetadata"] } },
};

const id = z.string().min(1);
const time = z.string().nullish();
const wireCreated = z.object({ id, macSecretBase64: z.string().min(1), expirationTime: time });
const wireRefreshed = z.object({ expirationTime: time });
const wireHook = z.object({
  id,
  notificationUrl: z.string().nullish(),
  isHookEnabled: z.boolean(),
  areNotificationsEnabled: z.boolean(),
  cursorForNextPayload: z.number().int().min(1),
  expirationTime: time,
});
const wireHooks = z.object({ webhooks: z.array(wireHook) });

export function createChangeFeed(request: Request): ChangeFeed {
  return {
    dependents: dependentsOf,
    changesByItself,

    async createWebhook(baseId, { notificationUrl }, signal) {
      const body = { notificationUrl, specification: SPECIFICATION };
      const answer = parseAnswer(await request(hooksPath(baseId), { signal, body }));
      const made = check(wireCreated, answer, "new webhook");
      return { id: made.id, secretBase64: made.macSecretBase64, expiresMs: msOf(made.expirationTime) };
    },

    async listWebhooks(baseId, signal) {
      return readHooks(parseAnswer(await request(hooksPath(baseId), { signal })));
    },

    async deleteWebhook(baseId, hookId, signal) {
      try {
        // The answer may be empty, so it is not read.
        await request(hookPath(baseId, hookId), { signal, method: "DELETE" });
      } catch (error) {
        if (!isBasetideError(error, "source_not_found")) throw error;
      }
    },

    async refreshWebhook(baseId, hookId, signal) {
      const path = `${hookPath(baseId, hookId)}/refresh`;
      const answer = parseAnswer(await request(path, { signal, method: "POST" }));
      return msOf(check(wireRefreshed, answer, "refreshed webhook").expirationTime);
    },

    async enableNotifications(baseId, hookId, enable, signal) {
      await request(`${hookPath(baseId, hookId)}/enableNotifications`, { signal, body: { enable } });
    },

    async listPayloads(baseId, hookId, cursor, signal) {
      if (!Number.isSafeInteger(cursor) || cursor < 1)
        throw new BasetideError("invalid_request", `A webhook's cursor is a number from 1 on, not ${cursor}`);
      const path = `${hookPath(baseId, hookId)}/payloads?cursor=${cursor}&limit=${MAX_PAYLOADS}`;
      return readBatch(parseAnswer(await request(path, { signal })), cursor);
    },
  };
}

/** The list of a base's hooks. @throws BasetideError `source_bad_answer` */
export function readHooks(answer: unknown): SourceHook[] {
  return check(wireHooks, answer, "list of webhooks").webhooks.map((hook) => ({
    id: hook.id,
    notificationUrl: hook.notificationUrl ?? undefined,
    isEnabled: hook.isHookEnabled,
    areNotificationsEnabled: hook.areNotificationsEnabled,
    nextCursor: hook.cursorForNextPayload,
    expiresMs: msOf(hook.expirationTime),
  }));
}

function hooksPath(baseId: string): string {
  return `/v0/bases/${encodeURIComponent(baseId)}/webhooks`;
}

function hookPath(baseId: string, hookId: string): string {
  return `${hooksPath(baseId)}/${encodeURIComponent(hookId)}`;
}

/** A time that cannot be read is none: hooks are refreshed in good time anyway. */
function msOf(text: string | null | undefined): number | undefined {
  const ms = Date.parse(text ?? "");
  return Number.isNaN(ms) ? undefined : ms;
}
