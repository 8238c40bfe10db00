/** Who holds a change set: of those that have taken it, only the last may send or record anything. */
import { expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import { getBase } from "../../../core/control/bases";
import {
  claimChangeSet,
  createChangeSet,
  type HeldSet,
  recordSent,
  releaseChangeSet,
  renewChangeSet,
  unfinishedItems,
} from "../../../core/control/change-sets";
import { authByHeader } from "../../support/console";
import { caller, GOOD_KEY, testControl } from "../../support/control-support";

async function scene() {
  const control = await testControl();
  const { ctx } = control;
  const { token } = await control.addAccount("owner@example.com");
  const call = caller(consoleApp(ctx, authByHeader()));
  const body = {
    platform: "airtable",
    api_key: GOOD_KEY,
    base_id: "appOne",
    settings: { change_sets: true },
  };
  const { id } = (await call("POST", "/api/v1/bases", { token, body })).body as { id: string };
  const set = await createChangeSet(ctx, await getBase(ctx.db, id), {
    operations: [{ operation: "create", table: "Tasks", fields: { Name: "New" } }],
  });
  const [item] = await unfinishedItems(ctx, set.id, 1);
  const claim = async () => (await claimChangeSet(ctx.db))!;
  const sends = (held: HeldSet) => recordSent(ctx, held, [{ id: item!.id, before: undefined }]);
  const lapse = () => ctx.db`update change_sets set held_until = now() - interval '1 second'`;
  return { control, db: ctx.db, claim, sends, lapse };
}

test("a hold that has lapsed is over, also for a process that takes the set again after it stood still", async () => {
  const { control, db, claim, sends, lapse } = await scene();
  await using _ = control;
  const first = await claim();
  await lapse();
  expect(await sends(first)).toBe(false);
  const second = await claim();
  expect(second.id).toBe(first.id);
  expect(await renewChangeSet(db, first, "")).toBeUndefined();
  expect(await sends(first)).toBe(false);
  // What the first lets go is not the second's.
  await releaseChangeSet(db, first);
  expect(await sends(second)).toBe(true);
  expect(await claimChangeSet(db)).toBeUndefined();
});
