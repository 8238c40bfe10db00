/** URLs of databases as customers enter them, through the API: any URL gets an answer. */
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { gateway } from "../../../core/external";
import { managementApi } from "../../support/control-support";
import { freePort } from "../../support/free-port";

const api = managementApi();
afterAll(() => gateway.stop());

const RUNS = Number(process.env.FUZZ_RUNS ?? 40);

/** Hosts that lead only to this machine. */
const host = fc.constantFrom(
  "[::1]",
  "[::ffff:127.0.0.1]",
  "[::]",
  "127.0.0.1",
  "localhost",
  "[::127.0.0.1]",
  "[",
  "::1",
);
const part = fc.oneof(
  fc.string({ maxLength: 8 }),
  fc.constantFrom("%00", "%zz", "u", "p%40", "", "@", "[::1]", "a:b", "\u0000", "%ud800"),
);

test("a base with any URL as its destination is refused with 422, and the console continues", {
  timeout: 120_000,
}, async () => {
  const { token } = await api.newAccount();
  const closed = await freePort();
  const connect = async (url: string) => {
    const { status, body } = await api.connect(token, {
      destination: { kind: "external", url, schema: "copy" },
    });
    return { url, status, code: (body as { error?: { code: string } }).error?.code };
  };
  for (const url of [
    `postgres://u:p@[::1]:${closed}/db`,
    `postgres://u:p@[::1]/db?sslmode=require`,
    `postgres://u:p@[::ffff:127.0.0.1]:${closed}/x`,
    // The driver's own parser reads ff9b as the port: this kind of URL crashed the console.
    `postgres://u:p@[64:ff9b::127.0.0.1]:${closed}/x`,
    "postgres://u:p@[fe80::1%25lo]:5432/db",
    "postgres://u:p@[fe80::1]:5432/db",
    "postgres://u:p@:5432/db",
    "postgres://u:p@localhost:99999/db",
    "postgres://u%00:p@localhost/db",
    `postgres://u:p@localhost:${closed}/db?options=%00`,
    "postgres://[::1]/db",
  ]) {
    expect(await connect(url)).toEqual({ url, status: 422, code: "destination_invalid" });
  }
  await fc.assert(
    fc.asyncProperty(part, part, host, part, part, async (user, password, at, database, query) => {
      const url = `postgres://${user}:${password}@${at}:${closed}/${database}?${query}`;
      const { status } = await connect(url);
      expect([url, status]).toEqual([url, 422]);
    }),
    { numRuns: RUNS },
  );
});
