/** A lease that relies on its own knowledge of the base must notice every change that people can make. */
import { expect, test } from "vitest";
import { settingList } from "../../core/control/bases";
import type { BaseSettings } from "../../core/control/bases/settings";
import type { SyncFacts } from "../../core/sync/host";
import { isAsRead } from "../../core/sync/lease/leased-base";

const settings = Object.fromEntries(
  settingList.map((one) => [one.key, one.default]),
) as unknown as BaseSettings;
const at = new Date("2026-11-20T10:00:00Z");
const base = {
  state: "active" as const,
  settings,
  database: { id: "db1", name: "d", schema: "public", host: "h", port: 5432 },
  resyncRequestedAt: at,
  attachmentKeyVersion: 1,
};
const facts: SyncFacts = {
  id: "base1",
  state: "active",
  settings: structuredClone(settings),
  resyncRequestedAt: new Date(at),
  selection: null,
  schemaCheckRequestedAt: null,
  catchUpRequestedAt: null,
  isWatched: false,
  databaseId: "db1",
  timeline: null,
  keyVersion: "k",
  attachmentKeyVersion: 1,
};

test("a base is not read again while nothing has changed", () => {
  expect(isAsRead(base, facts, 0)).toBe(true);
  expect(isAsRead({ ...base, resyncRequestedAt: null }, { ...facts, resyncRequestedAt: null }, 1500)).toBe(
    true,
  );
});

test("a base is read again if nothing is known, or nothing recent", () => {
  expect(isAsRead(base, undefined, 0)).toBe(false);
  expect(isAsRead(base, facts, 60_000)).toBe(false);
});

test("a base is read again after any change", () => {
  const changes: Partial<SyncFacts>[] = [
    { state: "paused" },
    { databaseId: "db2" },
    { attachmentKeyVersion: 2 },
    { resyncRequestedAt: new Date(at.getTime() + 1) },
    { resyncRequestedAt: null },
    ...settingList.map(({ key }) => ({
      settings: { ...settings, [key]: "another value" } as unknown as BaseSettings,
    })),
  ];
  for (const change of changes) {
    expect([change, isAsRead(base, { ...facts, ...change }, 0)]).toEqual([change, false]);
  }
});
