/** S1: only a base without a problem looks fresh; every other one says how old its data is. */
import fc from "fast-check";
import { h } from "preact";
import { renderToString } from "preact-render-to-string";
import { expect, test } from "vitest";
import type { Base, BaseState, LiveState } from "../../core/control/bases";
import { indicatorOf, statusOf } from "../../core/control/status";
import { errorCodes } from "../../core/errors";
import { Now } from "../../views/base/now";

const now = new Date("2026-11-20T12:00:00Z");
const HOUR_MS = 3_600_000;
const GOOD_NEWS =
  /In sync|>Live<|>immediately<|Changes arrive|every known change|No missed|matched|Sync time|usually/;

const past = fc.integer({ min: 0, max: 48 * HOUR_MS }).map((ms) => new Date(now.getTime() - ms));
const future = fc.integer({ min: 1, max: 2 * HOUR_MS }).map((ms) => new Date(now.getTime() + ms));
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null });
const syncs = fc
  .record({ kind: fc.constantFrom("first", "sweep", "rapid", "live"), startedAt: past })
  .map(({ kind, startedAt }) => ({
    kind: kind as "sweep",
    startedAt,
    completedAt: new Date(Math.min(now.getTime(), startedAt.getTime() + 4000)),
    durationMs: 4000,
  }));
const feeds: fc.Arbitrary<LiveState> = fc.record({
  state: fc.constantFrom("making", "on", "refused", "failing"),
  reason: fc.constant("no scope"),
  by: fc.constantFrom("notification", "poll"),
  changedAt: maybe(past),
  readAt: maybe(past),
  dueAt: maybe(fc.oneof(past, future)),
  waiting: fc.nat(3),
  waitingSince: maybe(past),
  missed: fc.nat(2),
  missedAt: maybe(past),
  comparedAt: maybe(past),
  driftedSince: maybe(past),
  gapSince: maybe(past),
  expiresAt: fc.constant(null),
  offSince: maybe(past),
  retryAt: maybe(future),
});
const bases = fc
  .record({
    state: fc.constantFrom<BaseState[]>("starting", "active", "paused", "needs_attention", "deleting"),
    sync: maybe(syncs),
    sweep: maybe(past.map((startedAt) => ({ startedAt, completedAt: startedAt, backgroundMs: 60_000 }))),
    error: maybe(
      fc.record({
        code: fc.constantFrom(...(Object.keys(errorCodes) as (keyof typeof errorCodes)[])),
        message: fc.constant("RAW ANSWER"),
        since: past,
      }),
    ),
    recentSweepMs: fc.constant([4000, 4000, 4000]),
    createdAt: past,
    live: maybe(feeds),
    restsUntil: maybe(fc.oneof(past, future)),
    blocked: maybe(fc.record({ until: future, reason: fc.constantFrom("rate_limited", "billing_limit") })),
    attemptedAt: maybe(past),
    isReadOnly: fc.boolean(),
    problems: fc.array(
      fc.record({
        kind: fc.constantFrom("missing_table", "outdated_table", "settings"),
        tableId: fc.constant("tblOne"),
        name: fc.constant("Orders"),
        message: fc.constantFrom("", "No answer."),
        since: past,
        nextAt: maybe(future),
      }),
      { maxLength: 2 },
    ),
    failingTables: fc.array(
      fc.record({
        table_id: fc.constant("tblOne"),
        name: fc.constant("Orders"),
        code: fc.constant("source_forbidden" as const),
        message: fc.constant("No."),
        since: past.map((time) => time.toISOString()),
        next_try_at: future.map((time) => time.toISOString()),
      }),
      { maxLength: 2 },
    ),
    schemaError: maybe(
      fc.record({
        code: fc.constant("source_timeout" as const),
        message: fc.constant("No answer."),
        since: past.map((time) => time.toISOString()),
      }),
    ),
    progressAt: maybe(past),
    repairsSince: maybe(past),
    catchUpRequestedAt: maybe(past),
    isRapid: fc.boolean(),
  })
  .map(({ isRapid, ...facts }) => ({
    ...facts,
    id: "bas_1",
    settings: { live: true, rapid: isRapid },
    progress: null,
    tables: [],
    issueCount: 0,
    workspaceId: null,
    repairs: 1,
  })) as unknown as fc.Arbitrary<Base>;

test("a base that is not current says as of when its data is, and nothing that sounds like good news", () => {
  fc.assert(
    fc.property(bases, (base) => {
      const status = statusOf(base, now);
      const card = renderToString(h(Now, { base, now, keyHelpUrl: undefined }));
      if (status.isCurrent) {
        expect(indicatorOf(base, now).color).toBe("green");
        // S2.
        const kinds = base.problems.map(({ kind }) => kind).filter((kind) => kind !== "outdated_table");
        expect(kinds).toEqual([]);
        if (!base.settings.rapid) expect(base.live?.state).not.toMatch(/refused|failing/);
        return;
      }
      // The cause may name what is usual; the figures may not.
      const shown = card
        .replaceAll(status.headline.replaceAll("'", "&#39;"), "")
        .replaceAll(status.headline, "");
      expect(shown).not.toMatch(GOOD_NEWS);
      if (base.sync && status.word !== "First sync") expect(card).toContain("Data as of");
      if (status.details) expect(card.split("<details")[0]).not.toContain("RAW ANSWER");
    }),
  );
});

test("data is never said to be newer than the last read that was complete", () => {
  fc.assert(
    fc.property(bases, (base) => {
      const { asOf } = statusOf(base, now);
      expect(asOf === null).toBe(base.sync === null);
      if (!asOf || !base.sync) return;
      const newest = Math.max(base.sync.startedAt.getTime(), base.live?.readAt?.getTime() ?? 0);
      expect(asOf.getTime()).toBeLessThanOrEqual(newest);
    }),
  );
});
