import { expect, test } from "vitest";
import type { Db } from "../../core/context";
import { authenticate } from "../../core/control/accounts";
import { hashToken, newToken } from "../../core/control/accounts/tokens";

test("a token is bt_ and 32 random bytes, and its hash differs", () => {
  const [one, two] = [newToken(), newToken()];
  expect(one).toMatch(/^bt_[\w-]{43}$/);
  expect(Buffer.from(one.slice(3), "base64url")).toHaveLength(32);
  expect(one).not.toBe(two);
  expect(hashToken(one)).toMatch(/^[0-9a-f]{64}$/);
  expect(hashToken(one)).toBe(hashToken(one));
});

test("an invalid token is refused without a query", async () => {
  const noDatabase = (() => {
    throw new Error("asked");
  }) as unknown as Db;
  const wrong = [
    null,
    undefined,
    "",
    "Bearer",
    "Bearer ",
    `Basic ${newToken()}`,
    newToken(),
    "Bearer bt_short",
  ];
  for (const header of [...wrong, `Bearer ${newToken()}x`, `Bearer ${newToken()} ${newToken()}`]) {
    await expect(authenticate(noDatabase, header)).rejects.toMatchObject({ code: "unauthorized" });
  }
});
