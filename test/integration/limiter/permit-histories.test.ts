/**
 * I4 on a virtual clock, with the real holders and the real SQL: whatever happens to the processes, the network and the control
 * plane, at most five requests of a base arrive within a second.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect } from "vitest";
import { controlDatabase, type TestDatabase } from "../../support/database";
import { fuzz } from "../../support/fuzz";
import { histories, playHistory } from "../../support/permit-histories";
import { mostWithin } from "../../support/permit-simulation";

let database: TestDatabase;
beforeAll(async () => {
  database = await controlDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

fuzz(
  "I4: at most five requests of a base arrive within any second, in any history",
  25,
  fc.asyncProperty(histories, async (history) => {
    const world = await playHistory(database.sql, history);
    expect(mostWithin(world.sent.map(({ arrivedAt }) => arrivedAt))).toBeLessThanOrEqual(5);
    return true;
  }),
);
