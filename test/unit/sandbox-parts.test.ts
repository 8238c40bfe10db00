/** Separate parts of the sandbox: the sliding window, the log's count, page bytes, times, CSV, rollups. */
import { gunzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { URL_TOKEN } from "../../apps/sandbox/attachments";
import { PageBytes } from "../../apps/sandbox/page";
import { KeyRateLimiter } from "../../apps/sandbox/rate-limit";
import { parseQuery, parseSegments } from "../../apps/sandbox/request";
import { RequestLog } from "../../apps/sandbox/request-log";
import { aggregate } from "../../apps/sandbox/rollup";
import { defaultSettings } from "../../apps/sandbox/settings";
import { parseCsv } from "../../apps/sandbox/sync-csv";
import { parseMoment } from "../../apps/sandbox/times";

/** Arrival times that only increase, with bursts, gaps, and sums of gaps just under a second. */
const gap = fc.oneof(
  fc.constantFrom(0, 0, 1, 9, 199, 200, 201, 249, 250, 990),
  fc.double({ min: 0, max: 400, noNaN: true }),
);
const arrivals = fc.array(gap, { minLength: 1, maxLength: 120 }).map((gaps) => {
  let now = 1000;
  return gaps.map((ms) => {
    now += ms;
    return now;
  });
});

function mostWithinSecond(times: number[]): number {
  return Math.max(
    0,
    ...times.map((end, i) => times.slice(0, i + 1).filter((time) => end - time < 1000).length),
  );
}

describe("the sliding window", () => {
  test("R1: never admits a sixth within 1,000 ms, and refuses only what would have been one", () => {
    fc.assert(
      fc.property(arrivals, (times) => {
        const limiter = new KeyRateLimiter();
        const settings = { ...defaultSettings(), penaltyMs: 0 };
        const passed: number[] = [];
        for (const time of times) {
          const wouldBeSixth = passed.filter((other) => time - other < 1000).length >= 5;
          const isAdmitted = limiter.admits(settings, time, "usr", "app");
          expect(isAdmitted).toBe(!wouldBeSixth);
          if (isAdmitted) passed.push(time);
        }
        expect(mostWithinSecond(passed)).toBeLessThanOrEqual(5);
      }),
    );
  });

  test("a refusal blocks the base for the penalty, which later requests extend only if configured", () => {
    for (const [penaltyExtends, isOpen] of [
      [false, true],
      [true, false],
    ] as const) {
      const limiter = new KeyRateLimiter();
      const settings = { ...defaultSettings(), penaltyExtends };
      const admits = (time: number) => limiter.admits(settings, time, "usr", "app");
      for (let i = 0; i < 5; i++) expect(admits(0)).toBe(true);
      expect(admits(999)).toBe(false);
      expect(admits(30_000)).toBe(false);
      expect(admits(31_000)).toBe(isOpen);
    }
  });

  test("the log counts the most arrivals of any second", () => {
    fc.assert(
      fc.property(arrivals, (times) => {
        const log = new RequestLog();
        for (const arrivalMs of times)
          log.arrived({ arrivalMs, clientPort: 0, method: "GET", path: "/", baseId: "app", status: 0 });
        expect(log.summary().bases.app!.maxPerSecond).toBe(mostWithinSecond(times));
      }),
    );
  });
});

test("a page with holes unpacks to the page with tokens, plain and gzipped", () => {
  const piece = fc.oneof(fc.string({ unit: "binary", maxLength: 40 }), fc.constant("wave ".repeat(100)));
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 6 }), fc.stringMatching(/^[ -~]{0,60}$/), (pieces, tail) => {
      const token = "t".repeat(URL_TOKEN.length);
      const page = new PageBytes(pieces.map((text) => text.toWellFormed()).join(URL_TOKEN));
      const expected = pieces.map((text) => text.toWellFormed()).join(token) + tail;
      for (let i = 0; i < 2; i++) {
        expect(new TextDecoder("utf-8", { ignoreBOM: true }).decode(page.plain(token, tail))).toBe(expected);
        expect(new TextDecoder("utf-8", { ignoreBOM: true }).decode(gunzipSync(page.gzip(token, tail)))).toBe(
          expected,
        );
        expect(page.plainLength(tail)).toBe(Buffer.byteLength(expected));
      }
    }),
  );
});

test("a query's + is a blank, a path's is a plus, and invalid escapes stay", () => {
  expect(parseQuery("a=1+2&b%5B%5D=x%20y&c&&d=%zz")).toEqual([
    ["a", "1 2"],
    ["b[]", "x y"],
    ["c", ""],
    ["d", "%zz"],
  ]);
  expect(parseSegments("//v0/app/A+B%2FC//%F0%9F%8C%8A/")).toEqual(["v0", "app", "A+B/C", "🌊"]);
});

test.for([
  ["2024-03-31T02:30:00", "Europe/Paris", "2024-03-31T01:30:00.000Z"],
  ["2024-10-27T01:00:00", "Europe/Paris", "2024-10-26T23:00:00.000Z"],
  ["2024-01-15 08:00", "America/New_York", "2024-01-15T13:00:00.000Z"],
  ["2024-01-15", "client", "2024-01-15T00:00:00.000Z"],
  ["2024-01-15T08:00:00.1234Z", "utc", "2024-01-15T08:00:00.123Z"],
  ["15/01/2024", "utc", undefined],
  ["2024-13-01T00:00:00Z", "utc", undefined],
])("%s in %s is %s", ([text, zone, expected]) => {
  expect(parseMoment(text!, zone!)).toBe(expected);
});

test("a CSV's quotes, line ends and empty cells", () => {
  expect(parseCsv('a,"b ""x"", y",\r\n,2,3\n"line\nfeed",,')).toEqual([
    ["a", 'b "x", y', ""],
    ["", "2", "3"],
    ["line\nfeed", "", ""],
  ]);
});

test.for([
  ["SUM", [1, 2.5], 3.5],
  ["SUM", [], 0],
  ["AVERAGE", [], { specialValue: "NaN" }],
  ["AVERAGE", [1, 2], 1.5],
  ["MAX", [3, -7], 3],
  ["MIN", [3, -7], -7],
  ["COUNT", [1, "x"], 1],
  ["COUNTA", [1, "x"], 2],
  ["ARRAYJOIN", ["a", 1], "a, 1"],
  ["ARRAYUNIQUE", ["a", "b", "a"], ["a", "b"]],
  ["SUM", [1, { error: "#ERROR!" }], { error: "#ERROR!" }],
] as const)("a rollup's %s of %j is %j", ([name, values, expected]) => {
  expect(aggregate(name, [...values], String)).toEqual(expected);
});
