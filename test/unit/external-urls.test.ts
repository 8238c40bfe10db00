/** URLs of databases as customers enter them: accepted or refused, never anything else. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { externalServer, parseConnectionTarget } from "../../core/control/placement/external-url";
import { connectServer } from "../../core/postgres";
import { anyText, codeOr, fuzz } from "../support/fuzz";
import { repoFiles, repoRoot } from "../support/source-files";

const part = fc.oneof(
  anyText,
  fc.constantFrom(
    "[::1]",
    "[::ffff:1.2.3.4]",
    "[fe80::1%eth0]",
    "[fe80::1%25eth0]",
    "[",
    "]",
    "[::1",
    "::1",
    "[]",
  ),
  fc.constantFrom("%00", "%", "%zz", "%2F", "a%00b", "999999", "-1", "0", "65536", "1e3", "@", "a@b", "a,b"),
  fc.constantFrom("localhost", "127.0.0.1", "0x7f.1", "2130706433", "x.", ".", "db.example"),
);
const anyUrl = fc
  .tuple(
    fc.constantFrom("postgres", "postgresql", "POSTGRES", "http", ""),
    fc.array(part, { minLength: 6, maxLength: 6 }),
  )
  .map(
    ([scheme, [user, password, host, port, database, query]]) =>
      `${scheme}://${user}:${password}@${host}:${port}/${database}?sslmode=${query}&options=${query}`,
  );

fuzz(
  "any URL is accepted or refused with destination_invalid, and a pool can be created for it",
  500,
  fc.property(fc.oneof(anyUrl, anyText), (url) => {
    const server = codeOr(() => externalServer(url, "loopback"));
    if (typeof server === "string") return server === "destination_invalid";
    expect(server.address.port).toBeGreaterThan(0);
    expect(server.address.port).toBeLessThan(65_536);
    const { user, password, host, database } = server.address;
    expect([user, password, host, database].join("")).not.toContain("\0");
    connectServer(server, { max: 1 });
    return true;
  }),
);

test("a host may be an IPv6 address", () => {
  expect(parseConnectionTarget("postgres://u:p@[::1]:5433/db")).toMatchObject({ host: "::1", port: 5433 });
  expect(parseConnectionTarget("postgres://u:p@[::FFFF:1.2.3.4]/db")).toMatchObject({
    host: "::ffff:102:304",
    port: 5432,
  });
});

test.for([
  "postgres://u:p@[fe80::1%25eth0]/db",
  "postgres://u:p@[::1/db",
  "postgres://u:p@:5432/db",
  "postgres://u:p@db:99999/db",
  "postgres://u%00database%00x:p@db/db",
  "postgres://u:%zz@db/db",
  "postgres://u:p@db/d%00b",
  "postgres://u:p@db/db?sslmode=maybe",
  "postgres://u:p@db/db?target_session_attrs=x",
  "postgres://u:p@db/db?options=a%00b",
])("%s is refused", (url) => {
  expect(() => externalServer(url, "yes")).toThrow(expect.objectContaining({ code: "destination_invalid" }));
});

/** Which code creates a pool, and on whose servers. */
const MAKERS = {
  "core/limiter/control-plane.ts": "the control plane's, with the options of a pool that exists",
  "core/postgres/client.ts": "ours directly, customers' through the gateway",
};

/** A call, not part of a pattern for URLs. */
const MAKES = /(?:=|return|await|[(:])\s*postgres(?:<\w+>)?\((?!\?:|ql)/;

test("pools are created in one place", () => {
  // The programs that views show to people create pools of their own.
  const files = ["apps", "core"].flatMap((folder) => repoFiles(folder));
  const made = files.filter((path) => MAKES.test(readFileSync(join(repoRoot, path), "utf8")));
  expect(made.sort()).toEqual(Object.keys(MAKERS).sort());
});
