/** The set-up of a new connection: one query if the server is reached directly, and a second read behind a pooler. */
import { expect, test } from "vitest";
import { TransactionPooled } from "../../core/postgres";
import { prepareSession } from "../../core/postgres/session";

const SETTINGS = { lock_timeout: "30000", tcp_keepalives_idle: "5" };

/** A server that answers its n-th query with the n-th of `answers`. @returns the queries that it received */
async function prepare(answers: { pid: number; v0: string; v1: string }[], loginPid: number) {
  const sent: string[] = [];
  const answer = async (text: string) => [{ ...answers[sent.push(text) - 1]!, most: "100" }];
  const session = await prepareSession(answer, loginPid, SETTINGS);
  return { session, sent };
}

test("a direct connection is set up with one query", async () => {
  const { session, sent } = await prepare([{ pid: 7, v0: "30s", v1: "5" }], 7);
  expect(session).toEqual({ backendPid: 7, isPooled: false, maxConnections: 100 });
  expect(sent).toHaveLength(1);
});

test("behind a pooler the first query sets nothing, and the third reads what the second has set", async () => {
  const kept = { pid: 7, v0: "30s", v1: "5" };
  // Its own connection may be a Unix socket, where such settings read as 0.
  const { session, sent } = await prepare([kept, kept, { ...kept, v1: "0" }], 1);
  expect(session).toEqual({ backendPid: 7, isPooled: true, maxConnections: 100 });
  expect(sent).toHaveLength(3);
  expect(sent[0]).toContain("case when pg_catalog.pg_backend_pid() = 1 then pg_catalog.set_config");
  expect(sent[2]).not.toContain("set_config");
});

test("a connection whose process changes, or that loses its settings, belongs to a transaction pooler", async () => {
  const kept = { pid: 7, v0: "30s", v1: "5" };
  for (const answers of [
    [kept, kept, { ...kept, pid: 8 }],
    [kept, { ...kept, pid: 8 }, { ...kept, pid: 8 }],
    [kept, kept, { ...kept, v0: "0" }],
  ]) {
    await expect(prepare(answers, 1)).rejects.toBeInstanceOf(TransactionPooled);
  }
});
