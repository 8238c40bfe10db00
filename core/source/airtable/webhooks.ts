/** Implements the change feed with Airtable's webhook calls, and verifies that Airtable signed a notification. */

import { createHmac, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { BasetideError, isBasetideError } from "../../errors";
import type { ChangeFeed, SourceWebhook } from "../change-feed";
import type { SourceField, SourceSchema } from "../types";
import { parseAnswer } from "./answers";
import type { Request } from "./client";
import { dependentsOf, hasHiddenDependencies } from "./dependents";
import { readBatch } from "./payloads";
import { check } from "./schema";

/** Payloads in one answer: the maximum of the call (its reference, "List webhook payloads"). */
const MAX_PAYLOADS = 50;

/** Everything: rows and cells, fields, tables. */
const SPECIFICATION = {
  options: { filters: { dataTypes: ["tableData", "tableFields", "tableMetadata"] } },
};

const id = z.string().min(1);
const time = z.string().nullish();
const wireCreated = z.object({ id, macSecretBase64: z.string().min(1), expirationTime: time });
const wireRefreshed = z.object({ expirationTime: time });
const wireWebhook = z.object({
  id,
  notificationUrl: z.string().nullish(),
  isHookEnabled: z.boolean(),
  areNotificationsEnabled: z.boolean(),
  cursorForNextPayload: z.number().int().min(1),
  expirationTime: time,
});
const wireWebhooks = z.object({ webhooks: z.array(wireWebhook) });

export function createChangeFeed(request: Request): ChangeFeed {
  return {
    dependents: dependentsOf,
    changesByItself,
    hasHiddenDependencies,

    async createWebhook(baseId, { notificationUrl }, signal) {
      const body = { notificationUrl, specification: SPECIFICATION };
      const answer = parseAnswer(await request(webhooksPath(baseId), { signal, body }));
      const made = check(wireCreated, answer, "new webhook");
      return { id: made.id, secretBase64: made.macSecretBase64, expiresMs: msOf(made.expirationTime) };
    },

    async listWebhooks(baseId, signal) {
      return readWebhooks(parseAnswer(await request(webhooksPath(baseId), { signal })));
    },

    async deleteWebhook(baseId, webhookId, signal) {
      try {
        // The answer may be empty, so it is not read.
        await request(webhookPath(baseId, webhookId), { signal, method: "DELETE" });
      } catch (error) {
        if (!isBasetideError(error, "source_not_found")) throw error;
      }
    },

    async refreshWebhook(baseId, webhookId, signal) {
      const path = `${webhookPath(baseId, webhookId)}/refresh`;
      const answer = parseAnswer(await request(path, { signal, method: "POST" }));
      return msOf(check(wireRefreshed, answer, "refreshed webhook").expirationTime);
    },

    async enableNotifications(baseId, webhookId, enable, signal) {
      await request(`${webhookPath(baseId, webhookId)}/enableNotifications`, { signal, body: { enable } });
    },

    async listPayloads(baseId, webhookId, cursor, signal) {
      if (!Number.isSafeInteger(cursor) || cursor < 1)
        throw new BasetideError(
          "invalid_request",
          `A webhook's cursor must be a number of at least 1, not ${cursor}`,
        );
      const path = `${webhookPath(baseId, webhookId)}/payloads?cursor=${cursor}&limit=${MAX_PAYLOADS}`;
      return readBatch(parseAnswer(await request(path, { signal })), cursor);
    },
  };
}

/** Reads the list of a base's webhooks. @throws BasetideError `source_bad_answer` */
export function readWebhooks(answer: unknown): SourceWebhook[] {
  return check(wireWebhooks, answer, "list of webhooks").webhooks.map((webhook) => ({
    id: webhook.id,
    notificationUrl: webhook.notificationUrl ?? undefined,
    isEnabled: webhook.isHookEnabled,
    areNotificationsEnabled: webhook.areNotificationsEnabled,
    nextCursor: webhook.cursorForNextPayload,
    expiresMs: msOf(webhook.expirationTime),
  }));
}

function webhooksPath(baseId: string): string {
  return `/v0/bases/${encodeURIComponent(baseId)}/webhooks`;
}

function webhookPath(baseId: string, webhookId: string): string {
  return `${webhooksPath(baseId)}/${encodeURIComponent(webhookId)}`;
}

/** An unreadable time counts as absent: webhooks are refreshed well in advance anyway. */
function msOf(text: string | null | undefined): number | undefined {
  const ms = Date.parse(text ?? "");
  return Number.isNaN(ms) ? undefined : ms;
}

/** `hmac-sha256=<hex>`, over the unmodified body. */
export const NOTIFICATION_MAC_HEADER = "x-airtable-content-mac";

/** @param secretBase64 returned only once, when the webhook was created */
export function isSignedNotification(body: Uint8Array, secretBase64: string, headers: Headers): boolean {
  const [, hex] = /^hmac-sha256=([0-9a-f]{64})$/i.exec(headers.get(NOTIFICATION_MAC_HEADER) ?? "") ?? [];
  if (hex === undefined) return false;
  const mac = createHmac("sha256", Buffer.from(secretBase64, "base64")).update(body).digest();
  return timingSafeEqual(mac, Buffer.from(hex, "hex"));
}

const ASKS_THE_TIME = /\b(NOW|TODAY|FROMNOW|TONOW)\s*\(/i;

/**
 * Does the base have fields whose cells change although no user changes a record, which no feed reports? Such cells
 * depend on the time, or are the signed URLs of attachments, which expire. A field that reads such a field implies that
 * the base has one.
 *
 * @param options.hasLastingUrls the source's URLs of attachments are not stored, so their expiry does not matter
 */
export function changesByItself(
  { tables }: SourceSchema,
  { hasLastingUrls } = { hasLastingUrls: false },
): boolean {
  return tables.some(({ fields }) =>
    fields.some((field) => (field.type === "attachment" ? !hasLastingUrls : asksTheTime(field))),
  );
}

function asksTheTime({ type, options }: SourceField): boolean {
  return type === "formula" && typeof options?.formula === "string" && ASKS_THE_TIME.test(options.formula);
}
