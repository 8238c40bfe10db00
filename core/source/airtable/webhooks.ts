/** Implements the change feed with Airtable's webhook calls, and verifies that Airtable signed a notification. */

import { createHmac, timingSafeEqual } from "node:crypto";
import { BasetideError, isBasetideError } from "../../errors";
import { isObject } from "../../json";
import type { ChangeFeed, SourceWebhook } from "../change-feed";
import type { SourceField, SourceSchema } from "../types";
import { parseAnswer } from "./answers";
import type { Request } from "./client";
import { dependentsOf, hasHiddenDependencies } from "./dependents";
import { badAnswer, listIn, textIn } from "./parts";
import { isAsTold, isCursor, readBatch } from "./payloads";

/** Payloads in one answer: the maximum of the call (its reference, "List webhook payloads"). */
const MAX_PAYLOADS = 50;

/** Everything: rows and cells, fields, tables. */
const SPECIFICATION = {
  options: { filters: { dataTypes: ["tableData", "tableFields", "tableMetadata"] } },
};

export function createChangeFeed(request: Request): ChangeFeed {
  return {
    dependents: dependentsOf,
    changesByItself,
    hasHiddenDependencies,
    isAsTold,

    async createWebhook(baseId, { notificationUrl }, signal) {
      const body = { notificationUrl, specification: SPECIFICATION };
      const answer = parseAnswer(await request(webhooksPath(baseId), { signal, body }));
      const { id, macSecretBase64, expirationTime } = isObject(answer) ? answer : {};
      if (typeof id !== "string" || id === "") throw badAnswer("new webhook", "id", "expected text");
      if (typeof macSecretBase64 !== "string" || macSecretBase64 === "")
        throw badAnswer("new webhook", "macSecretBase64", "expected text");
      return { id, secretBase64: macSecretBase64, expiresMs: msOf(expirationTime) };
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
      return isObject(answer) ? msOf(answer.expirationTime) : undefined;
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

/**
 * Reads the list of a base's webhooks. Those of other programs may have any form: an entry without an id is skipped, and
 * another part that cannot be read says that the webhook is well.
 *
 * @throws BasetideError `source_bad_answer` if it is not a list
 */
export function readWebhooks(answer: unknown): SourceWebhook[] {
  return listIn(answer, "webhooks", "list of webhooks").flatMap((webhook): SourceWebhook[] => {
    const id = isObject(webhook) ? textIn(webhook.id) : undefined;
    if (!isObject(webhook) || !id) return [];
    return [
      {
        id,
        notificationUrl: textIn(webhook.notificationUrl),
        isEnabled: webhook.isHookEnabled !== false,
        areNotificationsEnabled: webhook.areNotificationsEnabled !== false,
        nextCursor: isCursor(webhook.cursorForNextPayload) ? webhook.cursorForNextPayload : undefined,
        expiresMs: msOf(webhook.expirationTime),
      },
    ];
  });
}

function webhooksPath(baseId: string): string {
  return `/v0/bases/${encodeURIComponent(baseId)}/webhooks`;
}

function webhookPath(baseId: string, webhookId: string): string {
  return `${webhooksPath(baseId)}/${encodeURIComponent(webhookId)}`;
}

/** An unreadable time counts as absent: webhooks are refreshed well in advance anyway. */
function msOf(text: unknown): number | undefined {
  const ms = Date.parse(textIn(text) ?? "");
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
