/**
 * Verifies that Airtable signed a notification: `X-Airtable-Content-MAC: hmac-sha256=<hex>`, over the unmodified body.
 */
import { createHmac, timingSafeEqual } from "node:crypto";

export const NOTIFICATION_MAC_HEADER = "x-airtable-content-mac";

/** @param secretBase64 returned only once, when the webhook was created */
export function isSignedNotification(body: Uint8Array, secretBase64: string, headers: Headers): boolean {
  const [, hex] = /^hmac-sha256=([0-9a-f]{64})$/i.exec(headers.get(NOTIFICATION_MAC_HEADER) ?? "") ?? [];
  if (hex === undefined) return false;
  const mac = createHmac("sha256", Buffer.from(secretBase64, "base64")).update(body).digest();
  return timingSafeEqual(mac, Buffer.from(hex, "hex"));
}
