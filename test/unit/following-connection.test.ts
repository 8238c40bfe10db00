/** A connection that follows another one hides nothing of it: a sync asks the source through one. */
import { expect, test } from "vitest";
import type { SourceConnection } from "../../core/source";
import { following } from "../../core/source";
import { createClient } from "../../core/source/airtable/client";
import { AirtableConnection } from "../../core/source/airtable/connection";

const connected = (apiKey: string) =>
  new AirtableConnection(createClient({ address: "http://127.0.0.1:9", apiKey, timeoutMs: 1000 }));

test("a follower has everything that its connection has, including kept connections", () => {
  const followed = connected("patA");
  const follower = following(() => followed);
  for (const name of Object.keys(followed) as (keyof SourceConnection)[]) {
    expect(follower[name], name).toBeDefined();
  }
  expect(follower.connections).toBe(followed.connections);
});

test("it follows the next connection as soon as there is one", () => {
  let current = connected("patA");
  const follower = following(() => current);
  current = connected("patB");
  expect(follower.connections).toBe(current.connections);
  expect(follower.changeFeed).toBe(current.changeFeed);
});
