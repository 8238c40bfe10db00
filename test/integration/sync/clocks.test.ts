/** Processes whose clocks disagree: times that one has recorded are correct for the others. */
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { type Base, createBase, getBase, recordRun } from "../../../core/control/bases";
import { closeFeedGap, loadFeed, recordFeedGap, saveWebhook } from "../../../core/control/feeds";
import { agoMs } from "../../../core/postgres";
import { newReport } from "../../../core/sync/engine";
import { sweptAgoMs } from "../../../core/sync/modes/shared";
import { about } from "../../support/about";
import { GOOD_KEY, SOURCE_BASES, type TestControl, testControl } from "../../support/control-support";
import { until } from "../../support/poll";

const HOUR_MS = 3_600_000;
/** What a slow machine may take meanwhile. */
const NEAR_MS = 60_000;
const SHIFTS = [-HOUR_MS, 0, HOUR_MS];

let control: TestControl;
beforeAll(async () => {
  control = await testControl();
});
afterAll(() => control?.[Symbol.asyncDispose]());
afterEach(() => void vi.useRealTimers());

/** From now on, like a process whose clock is off by this much. */
function clockOff(ms: number): void {
  vi.useRealTimers();
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + ms, shouldAdvanceTime: true });
}

async function newBase(): Promise<Base> {
  const account = await control.addAccount(`clock-${crypto.randomUUID()}@example.org`);
  const sourceBaseId = SOURCE_BASES[0]!.id;
  return createBase(control.ctx, account.id, { platform: "airtable", apiKey: GOOD_KEY, sourceBaseId });
}

test.each(SHIFTS)(
  "a sync recorded with a clock that is off by %d ms is reported as of its real time",
  async (shift) => {
    const { db } = control.ctx;
    const { id } = await newBase();
    const from = new Date();
    clockOff(shift);
    await recordRun(db, id, {
      ...newReport(),
      kind: "sweep",
      startedAt: new Date(Date.now() - 5000),
      completedAt: new Date(),
    });
    for (const reader of SHIFTS) {
      clockOff(reader);
      const base = await getBase(db, id);
      expect(Math.abs(agoMs(base, base.sync!.startedAt) - 5000)).toBeLessThan(NEAR_MS);
      expect(Math.abs(sweptAgoMs(base) - 5000)).toBeLessThan(NEAR_MS);
      expect(base.sync!.completedAt).toEqual(about(from, NEAR_MS));
    }
  },
);

test("the age of a feed gap depends on no clock of a process, and only the known gap is closed", async () => {
  const { db } = control.ctx;
  const { id } = await newBase();
  const webhook = { id: "achOne", encryptedSecret: "-", notificationUrl: null, expiresMs: undefined };
  const first = await saveWebhook(db, id, null, webhook);
  for (const reader of SHIFTS) {
    clockOff(reader);
    const kept = await loadFeed(db, id);
    expect(kept!.gapSince).toEqual(first);
    expect(kept!.gapMsAgo).toBeLessThan(NEAR_MS);
  }
  await until(async () => (await recordFeedGap(db, id, webhook.id))! > first!, { what: "a later gap" });
  for (const known of [null, first]) {
    await closeFeedGap(db, id, known);
    expect((await loadFeed(db, id))!.gapSince).not.toBeNull();
  }
  await closeFeedGap(db, id, (await loadFeed(db, id))!.gapSince);
  expect((await loadFeed(db, id))!.gapSince).toBeNull();
});
