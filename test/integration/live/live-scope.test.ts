/** A key without the scope for the feed: live sync is off, and on again as soon as the scope was added. */
import { expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import type { Account } from "../../../core/control/accounts";
import { getBase } from "../../../core/control/bases";
import { asker, authByHeader } from "../../support/console";
import { startLiveFleet } from "../../support/live-fleet";
import { until } from "../../support/poll";

test("after the scope was added to the same key, the page's button turns live sync on", {
  timeout: 120_000,
}, async () => {
  await using fleet = await startLiveFleet();
  const { ctx, sandbox } = fleet;
  const token = "patScopes.1";
  sandbox.control.createKey({ token, scopes: ["schema.bases:read", "data.records:read"] });
  const sourceId = sandbox.control.generate({ records: 5, tables: 1, seed: 3 });
  const { id, accountId } = await fleet.connect(sourceId, { turbo: true, live: true }, token);
  const stateIs = (state: string) => async () => (await getBase(ctx.db, id)).live?.state === state;
  await until(stateIs("refused"), { what: "live sync is refused", timeoutMs: 60_000 });
  await fleet.synced(id);

  const account = { id: accountId, email: "owner@example.com", isOperator: false } as Account;
  const ask = asker(consoleApp(ctx, authByHeader()));
  const { text } = await ask(`/bases/${id}`, { account });
  const [, action] =
    /<form method="post" action="([^"]+)"[^>]*>\s*<button[^>]*>I added it: check again/.exec(text) ?? [];
  expect(action, "the button").toBe(`/bases/${id}/live/check`);

  // Without the scope, the answer is the same.
  expect((await ask(action!, { account, form: {} })).status).toBe(303);
  await until(stateIs("refused"), { what: "live sync is refused again", timeoutMs: 60_000 });
  sandbox.control.createKey({ token });
  await ask(action!, { account, form: {} });
  await until(stateIs("on"), { what: "live sync is on", timeoutMs: 30_000 });
  await until(async () => !(await ask(`/bases/${id}`, { account })).text.includes("check again"), {
    what: "the page says nothing of it any longer",
    timeoutMs: 30_000,
  });
});
