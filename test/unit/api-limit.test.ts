/** The limits of the management API: what a call counts for, and what it does not. */
import { expect, test } from "vitest";
import { apiLimit, countCall } from "../../apps/console/api-limit";

const config = { apiRequestsPerMinute: 2, clientIpHeader: "x-client" };

/** One call. @returns whether it was let through */
function calling(limit = apiLimit(config)) {
  return (from: string, token: string, isValid: boolean) => {
    const headers = { authorization: `Bearer ${token}`, "x-client": from };
    const request = new Request("http://console/api/v1/bases", { headers });
    try {
      limit(request);
      if (isValid) countCall(request);
      return true;
    } catch (error) {
      expect(error).toMatchObject({
        code: "rate_limited",
        details: { retryAfterSeconds: expect.any(Number) },
      });
      return false;
    }
  };
}

test("made-up tokens of one network, or of many, refuse no token of another network", () => {
  const call = calling();
  for (let index = 0; index < 60_000; index++) call("192.0.2.1", `made up ${index}`, false);
  for (let index = 0; index < 60_000; index++)
    call(`10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`, `made up too ${index}`, false);
  for (let index = 0; index < 5; index++)
    expect(call(`198.51.100.${index}`, `new ${index}`, true)).toBe(true);
});

test("a valid token has its limit from all networks together, which calls that name it otherwise do not use", () => {
  const call = calling();
  expect([call("192.0.2.1", "mine", true), call("192.0.2.2", "mine", true)]).toEqual([true, true]);
  expect([call("192.0.2.3", "mine", true), call("192.0.2.4", "mine", true)]).toEqual([false, false]);
  const [first, ...others] = Array.from({ length: 5 }, (_, index) =>
    call(`192.0.2.1${index}`, "other", false),
  );
  expect([first, ...others]).toEqual([true, true, true, true, true]);
});

test("a network over its limit is refused before its token is counted", () => {
  const call = calling();
  for (let index = 0; index < 8; index++) expect(call("192.0.2.1", `made up ${index}`, false)).toBe(true);
  for (let index = 0; index < 8; index++) expect(call("192.0.2.1", "mine", true)).toBe(false);
  expect(call("192.0.2.2", "mine", true)).toBe(true);
});
