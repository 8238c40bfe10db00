/** The sentence that explains a call budget is complete in every state, with and without a rate. */
import { describe, expect, test } from "vitest";
import { explanationOf } from "../../views/budget/budget";

const endsAt = new Date("2026-12-01T00:00:00Z");

describe("the explanation of a budget", () => {
  test("names the rate of a base, if there is one", () => {
    expect(explanationOf({ state: "inside", endsAt, ratePerHour: 120 })).toBe(
      "Each base may use about 120 calls an hour from now on; unused calls speed up the rest of the month.",
    );
    expect(explanationOf({ state: "inside", endsAt, ratePerHour: null })).toBe(
      "Unused calls speed up the rest of the month.",
    );
  });

  test.for(["no_cap", "inside", "spent", "over"] as const)("is whole sentences in the state %s", (state) => {
    for (const ratePerHour of [null, 0, 3, 5000]) {
      const text = explanationOf({ state, endsAt, ratePerHour });
      expect(text).toMatch(/^[A-Z]/);
      expect(text).toMatch(/\.$/);
    }
  });
});
