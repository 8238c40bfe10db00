/**
 * Alerts from the observed state to the delivery: each once, to its recipients, and in one message where many coincide.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { alertKinds, createWebhook, setPreferences, updateWebhook } from "../../../core/alerts";
import { evaluate } from "../../../core/alerts/evaluate";
import {
  getBase,
  listSchemaChanges,
  recordSchemaChanges,
  saveSourceTables,
  updateSettings,
} from "../../../core/control/bases";
import { createWorkspace } from "../../../core/control/budgets";
import { newId } from "../../../core/ids";
import { connectControl } from "../../../core/postgres";
import { type AlertScene, alertScene } from "../../support/alert-scene";
import { until } from "../../support/poll";
import { type Receiver, startReceiver } from "../../support/receiver";

let scene: AlertScene;
beforeAll(async () => {
  scene = await alertScene();
});
afterAll(() => scene?.[Symbol.asyncDispose]());

type Account = Awaited<ReturnType<AlertScene["account"]>>;

async function hook(account: Account, receiver: Receiver, form: "json" | "slack" = "json") {
  return createWebhook(scene.ctx, account.id, {
    url: receiver.url("/services/Planted-Path"),
    form,
    kinds: [...alertKinds],
  });
}

const subjects = async (account: Account) =>
  (await scene.messagesOf(account.id)).map(({ subject }) => subject);
const mailsTo = (email: string) => scene.mailbox.mails.filter((mail) => mail.to === email);

test("each kind is sent once: by mail, as JSON and to Slack, with the remedy and a link", async () => {
  await using json = startReceiver();
  await using slack = startReceiver();
  const account = await scene.account(["Inventory"]);
  const [id] = account.ids as [string];
  const { db } = scene.ctx;
  const { userId } = (
    await db<{ userId: string }[]>`
    select user_id as "userId" from account_members where account_id = ${account.id}`
  )[0]!;
  await setPreferences(scene.ctx, account.id, [{ userId, kinds: [...alertKinds] }]);
  await hook(account, json);
  await hook(account, slack, "slack");
  const workspace = await createWorkspace(scene.ctx, account.id, {
    name: "Sales",
    plan: "custom",
    callsPerMonth: 100,
  });
  await updateSettings(scene.ctx, await getBase(db, id), { workspaceId: workspace.id });
  await using one = await scene.process();
  const settle = async () => {
    await scene.settle();
    await scene.delivered(one);
  };
  await settle();

  await scene.turn(id, "red");
  await settle();
  await scene.turn(id, "needs_attention", { message: "Authentication required" });
  await settle();
  await scene.turn(id, "well");
  await settle();
  const name = { source_name: "Price", name: "price", type: "numeric" };
  await recordSchemaChanges(db, id, [
    {
      kind: "field_renamed",
      table: "products",
      field: "cost",
      before: name,
      after: { ...name, source_name: "Cost", name: "cost" },
    },
  ]);
  await db`update schema_changes set seen_at = ${scene.now()} where base_id = ${id}`;
  await settle();
  await db`
    insert into quota_calls (key, month, sync, client)
    values ((select platform || ':' || source_base_id from bases where id = ${id}),
      date_trunc('month', ${scene.now()}::timestamptz at time zone 'UTC'), 99, 0)`;
  await settle();

  const told = [
    "Inventory has turned red",
    "Inventory needs a working API key",
    "Inventory has recovered",
    "Inventory: a schema change may break queries",
    "Sales: sync has used its share of this month's calls",
  ];
  expect(mailsTo(account.email).map((mail) => mail.subject)).toEqual(told);
  const [red, , , schema, budget] = mailsTo(account.email);
  expect(red!.text).toContain(`https://console.example/bases/${id}`);
  expect(red!.text).toContain("What to do: ");
  expect(red!.text).toContain("https://console.example/account/alerts");
  expect(schema!.text.replaceAll("\r\n", " ")).toContain("products.price is now products.cost");
  expect(budget!.text).toContain(`/account/workspaces/${workspace.id}`);

  const bodies = json.received.map(({ body }) => JSON.parse(body));
  expect(bodies.flatMap((body) => body.alerts.map((alert: { kind: string }) => alert.kind))).toEqual([
    "red",
    "needs_attention",
    "recovered",
    "breaking_change",
    "call_budget",
  ]);
  expect(bodies[1].alerts[0]).toMatchObject({
    name: "Inventory",
    base_id: id,
    workspace_id: null,
    code: "source_key_refused",
    url: `https://console.example/bases/${id}`,
    advice: expect.stringContaining("add a new API key"),
  });
  expect(slack.received.map(({ body }) => Object.keys(JSON.parse(body)))).toEqual(
    Array(5).fill(["text", "mrkdwn"]),
  );
  const counts = await one.metrics.metrics();
  for (const channel of ["mail", "webhook", "slack"]) {
    expect(counts).toMatch(
      new RegExp(`basetide_alerts_total\\{kind="red",channel="${channel}",outcome="sent"\\} 1`),
    );
  }
});

test("the results of a first sync are no change of the schema", async () => {
  const account = await scene.account(["Fresh"]);
  const [id] = account.ids as [string];
  const { db } = scene.ctx;
  const added = {
    kind: "table_added",
    table: "t",
    field: null,
    before: null,
    after: { source_name: "T", name: "t" },
  } as const;
  await recordSchemaChanges(db, id, [added]);
  await scene.look();
  await scene.pass(70);
  await scene.look();
  expect(await scene.alertsOf(account.id)).toEqual([]);
  await recordSchemaChanges(db, id, [added, { ...added, kind: "table_rebuilt" }]);
  await db`update schema_changes set seen_at = ${scene.now()} where base_id = ${id}`;
  await scene.settle();
  expect((await scene.alertsOf(account.id)).map(({ kind }) => kind)).toEqual(["schema_changed"]);
});

test("a new table that waits for a decision is an additive change, and told once", async () => {
  const account = await scene.account(["Marketing"]);
  const [id] = account.ids as [string];
  const { db } = scene.ctx;
  await scene.look();
  const unanswered = [{ id: "tblP", name: "Payroll" }];
  for (let check = 0; check < 2; check++) await saveSourceTables(db, id, { tables: [], unanswered });
  await db`update schema_changes set seen_at = ${scene.now()} where base_id = ${id}`;
  await scene.settle();
  expect((await scene.alertsOf(account.id)).map(({ kind }) => kind)).toEqual(["new_table"]);
  expect(await listSchemaChanges(db, id, 10)).toMatchObject([
    { kind: "table_waiting", severity: "additive", table: "Payroll" },
  ]);
  // Who has decided is not told again, and who is asked about another table is.
  await saveSourceTables(db, id, { tables: [], unanswered: [{ id: "tblQ", name: "Quotes" }] });
  await db`update schema_changes set seen_at = ${scene.now()} where base_id = ${id}`;
  await scene.pass(70);
  await scene.settle();
  const [, second] = await scene.alertsOf(account.id);
  expect(second).toMatchObject({ kind: "new_table" });
});

test("a proposal that waits is told once, and not if somebody decides at once", async () => {
  const account = await scene.account(["Marketing"]);
  const [id] = account.ids as [string];
  const { db } = scene.ctx;
  const propose = (note: string, state = "proposed") => db`
    insert into change_sets (id, base_id, state, note, is_proposal, created_by, created_at, expires_at, ended_at)
    values (${newId("change_set")}, ${id}, ${state}, ${note}, true, 'Claude', ${scene.now()},
      ${new Date(scene.now().getTime() + 86_400_000)}, ${state === "proposed" ? null : scene.now()})`;
  await scene.look();
  await propose("Close the tasks of June");
  await propose("Close nothing", "rejected");
  await scene.settle();
  const alerts = () => db<{ kind: string; facts: object }[]>`
    select kind, facts from alerts where account_id = ${account.id} order by id`;
  const [first, ...others] = await alerts();
  expect(others).toEqual([]);
  expect(first).toMatchObject({
    kind: "proposal_waiting",
    facts: { changes: ["Claude: Close the tasks of June"], changeCount: 1, proposal: expect.any(String) },
  });
  // At most one an hour of a base.
  await propose("Another");
  await propose("One more");
  await scene.settle();
  expect(await alerts()).toHaveLength(1);
  await scene.pass(60);
  await scene.look();
  const [, second] = await alerts();
  expect(second).toMatchObject({ kind: "proposal_waiting", facts: { changeCount: 2 } });
});

test("a new webhook is told what is red now; one that was not told of a failure is not told of its end", async () => {
  await using late = startReceiver();
  await using later = startReceiver();
  const account = await scene.account(["Marketing", "Sales", "Archive"]);
  const [red, well, paused] = account.ids as [string, string, string];
  await using one = await scene.process();
  await scene.turn(red, "red");
  await scene.turn(paused, "red");
  await scene.settle();
  await scene.turn(paused, "paused");
  await scene.settle();
  const texts = ({ received }: Receiver) => received.map(({ body }) => JSON.parse(body).text as string);

  await hook(account, late);
  await scene.look();
  await scene.delivered(one);
  expect(texts(late)).toEqual([expect.stringContaining("Marketing has turned red")]);
  await scene.look();
  await scene.delivered(one);
  expect(late.received).toHaveLength(1);

  await scene.turn(red, "well");
  await scene.look();
  await hook(account, later);
  await scene.pass(2);
  await scene.look();
  await scene.delivered(one);
  expect(texts(late)).toEqual([
    expect.stringContaining("Marketing has turned red"),
    expect.stringContaining("Marketing has recovered"),
  ]);
  expect(texts(later)).toEqual([]);

  const { db } = scene.ctx;
  const added = {
    table: "t",
    field: "a",
    before: null,
    after: { source_name: "A", name: "a", type: "text" },
  };
  await recordSchemaChanges(db, well, [
    { ...added, kind: "field_added" },
    { ...added, kind: "field_retyped", before: { source_name: "A", name: "a", type: "numeric" } },
  ]);
  await db`update schema_changes set seen_at = ${scene.now()} where base_id = ${well}`;
  await scene.settle();
  const changes = (await scene.alertsOf(account.id)).filter(({ base }) => base === well);
  expect(changes.map(({ kind }) => kind)).toEqual(["breaking_change", "schema_changed"]);
});

test("twenty bases that turn red one after the other are one message to each member", async () => {
  const account = await scene.account(Array.from({ length: 20 }, (_, index) => `Base ${index + 1}`));
  const friend = await scene.addMember(account.id);
  await scene.look();
  for (const id of account.ids) {
    await scene.turn(id, "red");
    await scene.pass(0.1);
    await scene.look();
  }
  for (let index = 0; index < 20; index++) {
    await scene.pass(0.25);
    await scene.look();
  }
  await using one = await scene.process();
  await scene.delivered(one);
  for (const email of [account.email, friend]) {
    expect(mailsTo(email).map((mail) => mail.subject)).toEqual(["20 bases have turned red"]);
    for (const index of [1, 20]) expect(mailsTo(email)[0]!.text).toContain(`Base ${index} has turned red`);
  }
});

test("a base that alternates is one alert per hour, and the next one says how often", async () => {
  const account = await scene.account(["Flapping"]);
  const [id] = account.ids as [string];
  await scene.look();
  for (let index = 0; index < 15; index++) {
    await scene.turn(id, index % 2 === 0 ? "red" : "well");
    await scene.settle();
    await scene.pass(1.5);
  }
  await scene.turn(id, "red");
  await scene.look();
  await scene.pass(60);
  await scene.look();
  const told = await scene.alertsOf(account.id);
  expect(told.map(({ kind }) => kind)).toEqual(["red", "recovered", "red"]);
  expect(told[2]!.times).toBeGreaterThanOrEqual(8);
});

test("a recipient of many alerts gets six messages in an hour, and then the rest in one", async () => {
  const account = await scene.account(Array.from({ length: 12 }, (_, index) => `Busy ${index + 1}`));
  await scene.look();
  for (const id of account.ids) {
    await scene.turn(id, "red");
    await scene.settle();
    await scene.pass(1);
  }
  expect(await subjects(account)).toHaveLength(6);
  await scene.pass(60);
  await scene.look();
  expect((await subjects(account)).slice(6)).toEqual(["6 bases have turned red"]);
});

test("members get what they selected; former members and unconfirmed addresses get nothing", async () => {
  const account = await scene.account(["Chosen"]);
  const [id] = account.ids as [string];
  const { db } = scene.ctx;
  const [quiet, unconfirmed, gone] = [
    await scene.addMember(account.id),
    await scene.addMember(account.id),
    await scene.addMember(account.id),
  ];
  const userOf = async (email: string) =>
    (await db<{ id: string }[]>`select id from users where email = ${email}`)[0]!.id;
  await setPreferences(scene.ctx, account.id, [{ userId: await userOf(quiet), kinds: ["recovered"] }]);
  await db`update users set email_verified = false where email = ${unconfirmed}`;
  await scene.look();
  await scene.turn(id, "red");
  await scene.settle();
  await db`delete from account_members where account_id = ${account.id} and user_id = ${await userOf(gone)}`;
  await scene.turn(id, "well");
  await scene.settle();
  await using one = await scene.process();
  await scene.delivered(one);
  expect(mailsTo(account.email).map(({ subject }) => subject)).toEqual([
    "Chosen has turned red",
    "Chosen has recovered",
  ]);
  expect(mailsTo(quiet).map(({ subject }) => subject)).toEqual(["Chosen has recovered"]);
  expect([...mailsTo(unconfirmed), ...mailsTo(gone)]).toEqual([]);
});

test("with any number of concurrent evaluations: no kind twice in the hour, each target once, and the last message is true", async () => {
  const other = { ...scene.ctx, db: connectControl(scene.ctx.config.databaseUrl!, { max: 4 }) };
  const condition = fc.constantFrom("well", "red", "needs_attention", "paused" as const);
  const steps = fc.array(
    fc.record({ base: fc.nat(1), condition, minutes: fc.constantFrom(0.25, 1, 2, 5, 30) }),
    { minLength: 1, maxLength: 12 },
  );
  try {
    await fc.assert(
      fc.asyncProperty(steps, async (moments) => {
        const account = await scene.account(["One", "Two"]);
        const bothLook = () => Promise.all([scene.look(), scene.look(other)]);
        const truth = ["well", "well"];
        for (const { base, condition: next, minutes } of moments) {
          await scene.turn(account.ids[base]!, next);
          truth[base] = next;
          await bothLook();
          await scene.pass(minutes);
          await bothLook();
        }
        for (const minutes of [0, 2, 59, 2, 2, 60]) {
          await scene.pass(minutes);
          await bothLook();
        }
        const told = await scene.alertsOf(account.id);
        for (const [index, id] of account.ids.entries()) {
          const own = told.filter(({ base }) => base === id);
          for (const [at, alert] of own.entries()) {
            const before = own.slice(0, at).findLast(({ kind }) => kind === alert.kind);
            if (before) expect(alert.at.getTime() - before.at.getTime()).toBeGreaterThanOrEqual(3_600_000);
          }
          const last = own.at(-1)?.kind ?? "recovered";
          if (truth[index] !== "paused")
            expect(last).toBe(truth[index] === "well" ? "recovered" : truth[index]);
        }
        const [row] = await scene.ctx.db<{ notices: number; pending: number }[]>`
          select count(*)::int as notices, count(*) filter (where message_id is null)::int as pending
          from alert_notices where account_id = ${account.id}`;
        expect(row).toEqual({ notices: told.length, pending: 0 });
        for (const id of account.ids) await scene.turn(id, "paused");
      }),
      { numRuns: 15 },
    );
  } finally {
    await other.db.end({ timeout: 1 });
  }
}, 120_000);

test("two processes deliver a message once, also one that a third process recorded before it died", async () => {
  await using receiver = startReceiver();
  const account = await scene.account(["Twice"]);
  await hook(account, receiver);
  await scene.look();
  await scene.turn(account.ids[0]!, "red");
  await scene.settle();
  expect(receiver.received).toHaveLength(0);
  // Of the two messages, a process has taken one, and died.
  const { db } = scene.ctx;
  await db`
    update alert_messages set attempts = 1, held_until = now() + interval '1 minute'
    where account_id = ${account.id} and webhook_id is not null`;
  await using one = await scene.process();
  await using two = await scene.process();
  await Promise.all([one.look(), two.look()]);
  await until(() => mailsTo(account.email).length === 1, { what: "the other is sent" });
  expect(receiver.received).toHaveLength(0);
  await db`update alert_messages set held_until = now() where account_id = ${account.id}`;
  await scene.delivered(one);
  expect(receiver.received).toHaveLength(1);
  expect(mailsTo(account.email)).toHaveLength(1);
  expect(await evaluate(scene.ctx, { everyMs: 15_000, now: scene.now() })).toBe(null);
});

test("an unreachable receiver is retried under the same id, then given up; no secret is in the log or outbox", async () => {
  await using receiver = startReceiver();
  const account = await scene.account(["Planted"]);
  const { webhook, secret } = await hook(account, receiver);
  receiver.answer = { status: 500 };
  await scene.look();
  await scene.turn(account.ids[0]!, "red");
  await scene.settle();
  await using one = await scene.process();
  await scene.delivered(one);
  const messages = await scene.messagesOf(account.id);
  expect(messages.map(({ state, attempts, error }) => [state, attempts, error])).toEqual(
    expect.arrayContaining([
      ["given_up", 3, "The receiver answered 500"],
      ["sent", 1, null],
    ]),
  );
  expect(receiver.received).toHaveLength(3);
  expect(new Set(receiver.received.map(({ headers }) => headers.get("x-basetide-delivery"))).size).toBe(1);
  expect(await one.metrics.metrics()).toMatch(/kind="red",channel="webhook",outcome="given_up"\} 1/);

  receiver.answer = { status: 302, headers: { location: receiver.url("/elsewhere") } };
  await scene.turn(account.ids[0]!, "well");
  await scene.settle();
  await one.look();
  await until(() => receiver.received.length > 3, { what: "it is sent" });
  await until(
    async () =>
      (await scene.messagesOf(account.id)).find(
        ({ state, error }) => state === "waiting" && error?.includes("302"),
      ),
    { what: "a redirect has counted as a failure" },
  );
  receiver.answer = { status: 204 };
  await scene.delivered(one);
  expect(receiver.received.map(({ path }) => path)).not.toContain("/elsewhere");
  const [after] = await scene.ctx
    .db`select error, failing_since from alert_webhooks where id = ${webhook.id}`;
  expect(after).toEqual({ error: null, failing_since: null });

  const rows = await scene.ctx.db`select m::text as row from alert_messages as m`;
  const everything = [...scene.lines, ...rows.map(({ row }) => row)].join("\n");
  expect(everything).toContain(messages.find(({ state }) => state === "given_up")!.id);
  for (const word of [secret, "Planted-Path", receiver.url("").replace("http://", "")]) {
    expect(everything).not.toContain(word);
  }
}, 60_000);

test("a receiver that does not answer delays no other's messages", async () => {
  await using silent = startReceiver();
  await using receiver = startReceiver();
  const answers = Promise.withResolvers<void>();
  silent.answer = { status: 200, after: answers.promise };
  const [stuck, other] = [await scene.account(["Stuck"]), await scene.account(["Other"])];
  await hook(stuck, silent);
  await hook(other, receiver);
  await scene.look();
  await scene.turn(stuck.ids[0]!, "red");
  await scene.settle();
  await using one = await scene.process();
  await one.look();
  await until(() => silent.received.length === 1, { what: "one waits for its answer" });
  for (const condition of ["red", "well"] as const) {
    await scene.turn(other.ids[0]!, condition);
    await scene.settle();
    await one.look();
  }
  await until(() => receiver.received.length === 2, { what: "the other has both messages" });
  const waiting = (await scene.messagesOf(stuck.id)).filter(({ state }) => state === "waiting");
  expect(waiting).toHaveLength(1);
  answers.resolve();
  await scene.delivered(one);
  expect(silent.received).toHaveLength(1);
});

test("a disabled webhook gets nothing more, and no waiting message either", async () => {
  await using receiver = startReceiver();
  const account = await scene.account(["Off"]);
  const { webhook } = await hook(account, receiver);
  await scene.look();
  await scene.turn(account.ids[0]!, "red");
  await scene.settle();
  await updateWebhook(scene.ctx, webhook, { isOn: false });
  await using one = await scene.process();
  await scene.delivered(one);
  expect(receiver.received).toEqual([]);
  expect((await scene.messagesOf(account.id)).map(({ state }) => state).toSorted()).toEqual([
    "dropped",
    "sent",
  ]);
});
