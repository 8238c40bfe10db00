import fc from "fast-check";
import { expect, test } from "vitest";
import { fingerprintIn, isUrlRefresh } from "../../core/sync/state";
import { recordFingerprint, URL_REFRESH_MS } from "../../core/sync/state/record-fingerprint";
import { pageOf } from "../support/fake-source";
import { sourceRecord } from "../support/source-records";

const page = (hasAttachments: boolean) => ({
  ...pageOf([sourceRecord("rec1", { fld0: "text" })]),
  hasAttachments: () => hasAttachments,
});

test("a record without attachments always has the same fingerprint", () => {
  const plain = page(false);
  expect(recordFingerprint(plain, 0, 0)).toBe(recordFingerprint(plain, 0, 100 * URL_REFRESH_MS));
});

test("a record with attachments counts as changed once in every refresh period", () => {
  fc.assert(
    fc.property(fc.nat(10 * URL_REFRESH_MS), fc.nat(URL_REFRESH_MS - 1), (fromMs, laterMs) => {
      const attached = page(true);
      const at = (ms: number) => recordFingerprint(attached, 0, ms);
      expect(at(fromMs)).not.toBe(at(fromMs + URL_REFRESH_MS));
      const changes = [fromMs, fromMs + laterMs, fromMs + URL_REFRESH_MS].map(at);
      expect(new Set(changes).size).toBe(2);
    }),
  );
});

test("with our own URLs, a record with attachments always has the same fingerprint, and is never refreshed", () => {
  const table = { hasLastingUrls: true };
  const attached = page(true);
  expect(fingerprintIn(table, attached, 0)).toBe(attached.fingerprint(0));
  expect(isUrlRefresh(table, attached, 0, 0n)).toBe(false);
  expect(isUrlRefresh({ hasLastingUrls: false }, attached, 0, 0n)).toBe(true);
});
