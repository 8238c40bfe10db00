/**
 * The selection of a base in a whole service: what is left out is in nothing that is stored, shown, sent, logged or
 * traced, and a change of the selection is safe over a slow network and with a worker that stops.
 */
import { expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import { createWebhook } from "../../../core/alerts";
import { evaluate } from "../../../core/alerts/evaluate";
import { accountByEmail } from "../../../core/control/accounts";
import {
  createBase,
  getBase,
  readSelectable,
  requestResync,
  setSelection,
} from "../../../core/control/bases";
import type { SourceSelection } from "../../../core/source";
import { asker, authByHeader } from "../../support/console";
import { type Fleet, startFleet } from "../../support/fleet";
import { until } from "../../support/poll";
import { startReceiver } from "../../support/receiver";
import { wholeText } from "../../support/select";
import { startWorkerProcess } from "../../support/worker-process";

const SECRET = "s3cret-cell";
/** A change is told after two minutes. */
const ALERT_MS = 5 * 60_000;
const PATIENCE_MS = 90_000;
const OWNER = { email: "fleet@example.org", password: "correct horse" };
const text = (name: string) => ({ name, type: "singleLineText" });

/** The ids of a sandbox's base, by `Table` and `Table.Field`. */
function idsIn({ sandbox }: Fleet, baseId: string): Record<string, string> {
  const ids: Record<string, string> = {};
  for (const { id, name, fields } of sandbox.control.dump(baseId).tables) {
    ids[name] = id;
    for (const field of fields as { id: string; name: string }[]) ids[`${name}.${field.name}`] = field.id;
  }
  return ids;
}

/** Receives traces, and keeps every byte. */
function collector() {
  const bodies: string[] = [];
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      const body = new Uint8Array(await request.arrayBuffer());
      const isZipped = request.headers.get("content-encoding") === "gzip";
      bodies.push(new TextDecoder().decode(isZipped ? Bun.gunzipSync(body) : body));
      return Response.json({});
    },
  });
  return { bodies, url: `http://127.0.0.1:${server.port}`, [Symbol.dispose]: () => void server.stop(true) };
}

test.concurrent("what is omitted or hashed is in nothing that is stored, shown, sent, logged or traced", {
  timeout: 180_000,
}, async () => {
  using traces = collector();
  await using receiver = startReceiver();
  const env = {
    ALLOW_PRIVATE_DESTINATIONS: "loopback",
    LOG_LEVEL: "trace",
    OTEL_EXPORTER_OTLP_ENDPOINT: traces.url,
  };
  await using fleet = await startFleet({ workers: 0, env: { ALLOW_PRIVATE_DESTINATIONS: "loopback" } });
  const sourceId = fleet.sandbox.control.createBase({
    name: "Clients",
    tables: [
      {
        name: "Contacts",
        fields: [text("Name"), text("Mail"), text("Notes")],
        records: [1, 2, 3].map((nth) => ({
          fields: { Name: `Ada ${nth}`, Mail: `${SECRET}@${nth}`, Notes: `${SECRET} ${nth}` },
        })),
      },
      { name: "Salaries", fields: [text("Name")], records: [{ fields: { Name: `${SECRET} salary` } }] },
    ],
  });
  const ids = idsIn(fleet, sourceId);
  const account = await accountByEmail(fleet.ctx.db, OWNER.email);
  const selection: SourceSelection = {
    newTables: "ask",
    tables: {
      [ids.Contacts!]: {
        copied: true,
        fields: { [ids["Contacts.Mail"]!]: "hashed", [ids["Contacts.Notes"]!]: "omitted" },
      },
      [ids.Salaries!]: { copied: false },
    },
  };
  await createWebhook(fleet.ctx, account.id, {
    ...{
      name: "Ops",
      url: receiver.url(),
      form: "json",
      kinds: ["schema_changed", "breaking_change", "new_table"],
    },
  });
  await using worker = await startWorkerProcess(fleet, env);
  const { id } = await createBase(fleet.ctx, account.id, {
    ...{ platform: "airtable", apiKey: fleet.sandbox.key, sourceBaseId: sourceId, selection },
    settings: { live: false, history: true, notify: true },
  });
  await fleet.synced(id);
  const base = await getBase(fleet.ctx.db, id);
  const owner = await fleet.owner(base);
  const told: string[] = [];
  await owner.listen("basetide", (payload) => void told.push(payload));
  // From now on, changes of the schema cause alerts.
  await evaluate(fleet.ctx, { everyMs: 0 });

  // Every kind of change: cells, records, a field, a table.
  const { control } = fleet.sandbox;
  const [first, second] = control.dump(sourceId).tables[0]!.records;
  control.updateRecords(sourceId, "Contacts", [
    { id: first!.id, fields: { Name: "Bob", Mail: `new ${SECRET}`, Notes: `new ${SECRET}` } },
  ]);
  control.deleteRecords(sourceId, "Contacts", [second!.id]);
  control.createRecords(sourceId, "Contacts", [{ fields: { Name: "Cy", Mail: SECRET, Notes: SECRET } }]);
  control.addField(sourceId, "Contacts", text("Phone"));
  control.addTable(sourceId, { name: "Payroll", fields: [text("Name")] });
  control.createRecords(sourceId, "Payroll", [{ fields: { Name: `${SECRET} of a new table` } }]);
  // The next check of the schema would be in a minute.
  await fleet.ctx.db`update bases set schema_check_requested_at = now() where id = ${id}`;
  await fleet.synced(id);
  const haveAlert = async () => {
    await evaluate(fleet.ctx, { everyMs: 0, now: new Date(Date.now() + ALERT_MS) });
    return receiver.received.some(({ body }) => body.includes("Payroll") && body.includes("new_table"));
  };
  await until(haveAlert, { what: "the new table is told", timeoutMs: PATIENCE_MS, intervalMs: 500 });
  const reader = await fleet.reader(base);
  const rows = await reader`select name, mail from contacts order by name`;
  expect(rows.map(({ name }) => name)).toEqual(["Ada 3", "Bob", "Cy"]);
  for (const { mail } of rows) expect(mail).toMatch(/^[0-9a-f]{64}$/);

  const ask = asker(consoleApp(fleet.ctx, authByHeader()));
  const pages = [
    ...["", "/data/contacts", "/data/contacts/download", "/schema", "/schema?as=sql", "/runs", "/issues"],
    ...["/schema.sql", "/dbt-sources.yml", "/er-diagram.mmd", "/freshness", "/names", "/selection", "/sql"],
  ].map((path) => `/bases/${id}${path}`);
  const shown: string[] = [];
  for (const path of [
    ...pages,
    `/bases/${id}/data/contacts/${first!.id}`,
    "/search?q=contacts",
    "/account/activity",
  ])
    shown.push((await ask(path, { account })).text);
  expect(shown.join("")).toContain("Bob");

  const port = /"port":(\d+)/.exec(worker.output())?.[1];
  const metrics = [
    await (await fetch(`http://127.0.0.1:${port}/metrics`)).text(),
    await fleet.ctx.metrics.metrics(),
  ];
  worker.kill("SIGTERM");
  expect(await worker.exited).toBe(0);
  const places = {
    pages: shown.join("\n"),
    metrics: metrics.join("\n"),
    logs: worker.output() + worker.errors(),
    traces: traces.bodies.join("\n"),
    notifications: told.join("\n"),
    webhooks: receiver.received.map(({ body }) => body).join("\n"),
    database: await wholeText(owner),
    "control plane": await wholeText(fleet.ctx.db as never),
  };
  // Each has something to search; a notification may be lost.
  for (const [place, found] of Object.entries(places))
    if (place !== "notifications") expect([place, found.length > 100]).toEqual([place, true]);
  for (const [place, text] of Object.entries(places))
    expect([place, text.includes(SECRET)]).toEqual([place, false]);
});

/** A base of two tables of several pages, over a network of 100 ms, with everything copied. */
async function slowBase(fleet: Fleet) {
  const sourceId = fleet.sandbox.control.createBase({
    name: "Clients",
    tables: ["Contacts", "Leads"].map((name) => ({
      name,
      fields: [text("Name"), text("Mail"), text("Notes")],
      records: Array.from({ length: RECORDS }, (_, nth) => ({
        fields: { Name: `Ada ${nth}`, Mail: `${SECRET}@${nth}`, Notes: `${SECRET} ${nth}` },
      })),
    })),
  });
  const { id } = await fleet.connect(sourceId, { history: true });
  await fleet.synced(id, PATIENCE_MS);
  return { id, sourceId, ids: idsIn(fleet, sourceId) };
}

const RECORDS = 450;
const STOPPED_MS = 5_000;

test.concurrent("over a slow network, with a worker that stops, nothing that is omitted or hashed comes back, and no table is missing", {
  timeout: 240_000,
}, async () => {
  await using fleet = await startFleet({
    workers: 0,
    sandbox: { network: { roundTripMs: 100 }, tls: false },
  });
  await using first = await startWorkerProcess(fleet);
  const { id, sourceId, ids } = await slowBase(fleet);
  const base = await getBase(fleet.ctx.db, id);
  const reader = await fleet.reader(base);

  /** What a reader sees, again and again: what was once gone stays gone, and all records are there at any time. */
  const problems: string[] = [];
  const isGone = { notes: false, mail: false };
  const look = async () => {
    const [seen] = await reader<{ count: number; cells: string | null }[]>`
      select count(*)::int as count, string_agg(t::text, ' ') as cells from contacts as t`;
    const text = seen!.cells ?? "";
    const [has, is] = [{ notes: text.includes(`${SECRET} `), mail: text.includes(`${SECRET}@`) }, isGone];
    if (seen!.count !== RECORDS) problems.push(`${seen!.count} records`);
    for (const column of ["notes", "mail"] as const) {
      if (has[column] && is[column]) problems.push(`${column} came back`);
      is[column] ||= !has[column];
    }
  };
  const stop = new AbortController();
  const reading = (async () => {
    while (!stop.signal.aborted) {
      // A statement that waits for a swap is told that its table has changed.
      await look().catch((error: unknown) => problems.push(String(error)));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  })();

  const choose = async (fields: Record<string, "omitted" | "hashed">) => {
    const current = await getBase(fleet.ctx.db, id);
    const tables = { [ids.Contacts!]: { copied: true, fields }, [ids.Leads!]: { copied: true } };
    const schema = await readSelectable(fleet.ctx, current);
    await setSelection(fleet.ctx, current, { newTables: "copy", tables }, schema);
  };
  const notes = ids["Contacts.Notes"]!;
  try {
    // While a sweep runs, and its worker stops before it learns of the change; another one takes over.
    await requestResync(fleet.ctx, await getBase(fleet.ctx.db, id));
    fleet.sandbox.control.clearLog();
    const hasNextPage = () => fleet.sandbox.control.log(sourceId).some(({ path }) => path.includes("offset"));
    await until(hasNextPage, { what: "a sweep is between its pages", timeoutMs: PATIENCE_MS });
    first.kill("SIGSTOP");
    await choose({ [notes]: "omitted" });
    await using _second = await startWorkerProcess(fleet);
    await new Promise((resolve) => setTimeout(resolve, STOPPED_MS));
    first.kill("SIGCONT");
    await until(() => isGone.notes, { what: "the omitted column is gone", timeoutMs: PATIENCE_MS });
    // During the rebuild that this needs, another change.
    await choose({ [notes]: "omitted", [ids["Contacts.Mail"]!]: "hashed" });
    await until(() => isGone.mail, { what: "the hashes are shown", timeoutMs: PATIENCE_MS });
    await fleet.synced(id, PATIENCE_MS);
  } finally {
    stop.abort();
    await reading;
  }
  expect([...new Set(problems)]).toEqual([]);
  const left = (
    await (await fleet.owner(
      base,
    ))`select t::text as row from _sync_history as t where table_name = 'contacts'`
  ).map(({ row }) => row);
  expect(left.filter((row) => row.includes(SECRET))).toEqual([]);
});
