/** What a worker reads of its bases every second. */
import { expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import { recordRun } from "../../../core/control/bases";
import {
  syncFactHashes,
  syncFacts,
  syncVersionDigests,
  syncVersions,
  versionGroupOf,
} from "../../../core/control/bases/sync-facts";
import { arrayOf } from "../../../core/postgres";
import { authByHeader } from "../../support/console";
import { caller, GOOD_KEY, testControl } from "../../support/control-support";

/** Another value for each column that a fact is read from, as SQL. */
const changes = {
  state: "'needs_attention'",
  turbo: "not turbo",
  alias_days: "alias_days + 1",
  own_names: `'[{"id": "tblA", "name": "a"}]'`,
  indexes: `'[{"table": "tblA"}]'`,
  selection: `'{"tables": []}'`,
  resync_requested_at: "now()",
  schema_check_requested_at: "now()",
  catch_up_requested_at: "now()",
  is_watched: "not is_watched",
  attachment_key_version: "attachment_key_version + 1",
  encrypted_api_key: "'another'",
};

test("a run changes the version of a base and not the hash of its facts; every change of a fact changes both", async () => {
  await using control = await testControl();
  const { db } = control.ctx;
  const { token } = await control.addAccount("owner@example.com");
  const call = caller(consoleApp(control.ctx, authByHeader()));
  const body = { platform: "airtable", api_key: GOOD_KEY, base_id: "appOne" };
  const { id } = (await call("POST", "/api/v1/bases", { token, body })).body;
  const seen = async () => ({
    version: (await syncVersions(db, [id])).get(id),
    digest: (await syncVersionDigests(db, arrayOf([id], String))).get(versionGroupOf(id)),
    hash: (await syncFactHashes(db, [id])).get(id),
    facts: (await syncFacts(db, [id]))[0],
  });
  const counts = { seen: 0, inserted: 0, updated: 0, deleted: 0, requests: 1, waitMs: 0 };
  const run = () =>
    recordRun(db, id, { kind: "sweep", startedAt: new Date(), completedAt: new Date(), ...counts });
  // The first run makes the base active.
  await run();
  const before = await seen();
  await run();
  const after = await seen();
  const version = { ...before.version, base: expect.any(String) };
  expect(after).toEqual({ ...before, version, digest: expect.any(String) });
  expect(after.version!.base).not.toBe(before.version!.base);
  expect(after.digest).not.toBe(before.digest);

  let last = after;
  for (const [column, value] of Object.entries(changes)) {
    await db.unsafe(`update bases set ${column} = ${value} where id = '${id}'`);
    const now = await seen();
    expect(now.version!.base, column).not.toBe(last.version!.base);
    expect(now.digest, column).not.toBe(last.digest);
    expect(now.hash, column).not.toBe(last.hash);
    expect(now.facts, column).not.toEqual(last.facts);
    last = now;
  }
  expect((await syncFactHashes(db, ["none"])).size).toBe(0);
});
