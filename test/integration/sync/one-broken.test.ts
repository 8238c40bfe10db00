/**
 * One thing is broken, in any way: everything else arrives, the broken one is named, and it is whole again by itself, in
 * every mode, from the first sync on or later.
 *
 * The tables of one base are broken at the same time, each in a way of its own.
 */
import postgres from "postgres";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type Base, getBase, replicaTarget } from "../../../core/control/bases";
import type { ErrorCode } from "../../../core/errors";
import { asAdmin, superuserUrl } from "../../support/admin";
import { type BrokenFleet, MODES, startBrokenFleet } from "../../support/broken-fleet";
import { type Answerer, type RawAnswer, rawAnswer } from "../../support/broken-source";
import { expectEqualToSource } from "../../support/equal-to-source";
import { hostedUrl } from "../../support/hosted-url";
import { slowness } from "../../support/machine-speed";
import { until } from "../../support/poll";

vi.setConfig({ testTimeout: 180_000 });

const LONG_MS = 60_000;

let scene: BrokenFleet;
let fleet: BrokenFleet["fleet"];
let sandbox: BrokenFleet["sandbox"];
let source: BrokenFleet["source"];

beforeAll(async () => {
  scene = await startBrokenFleet();
  ({ fleet, sandbox, source } = scene);
});
afterAll(() => scene?.[Symbol.asyncDispose]());

type Reply = (passed: Parameters<Answerer>[1]) => RawAnswer | Promise<RawAnswer>;

const refusal = (status: number, type: string, headers?: string[]) => () =>
  rawAnswer(status, JSON.stringify({ error: { type } }), headers);
const head = (length: number) => `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n`;

/** Answers to every request for the records of a table, and the code of its failure. */
const ANSWERS: [what: string, code: ErrorCode, reply: Reply][] = [
  ["401", "source_key_refused", refusal(401, "AUTHENTICATION_REQUIRED")],
  ["403", "source_forbidden", refusal(403, "INVALID_PERMISSIONS_OR_MODEL_NOT_FOUND")],
  ["404", "source_not_found", refusal(404, "NOT_FOUND")],
  ["408", "source_rejected", refusal(408, "TIMEOUT")],
  ["422", "source_rejected", refusal(422, "SOMETHING_NEW")],
  ["502", "source_unavailable", () => rawAnswer(502, "<html>")],
  ["503 for an hour", "source_unavailable", refusal(503, "RETRIABLE_ERROR", ["Retry-After: 3600"])],
  ["lost iterators", "source_iterator_lost", refusal(422, "LIST_RECORDS_ITERATOR_NOT_AVAILABLE")],
  ["nothing", "source_timeout", () => null],
  ["half a head", "source_timeout", () => ({ bytes: "HTTP/1.1 200 OK\r\nContent-Le" })],
  ["half a body", "source_timeout", () => ({ bytes: `${head(99)}{` })],
  ["a cut body", "source_unavailable", () => ({ bytes: `${head(99)}{`, isEnd: true })],
  ["an end", "source_unavailable", () => ({ bytes: "", isEnd: true })],
  ["a page", "source_bad_answer", () => rawAnswer(200, "<html>")],
  ["other JSON", "source_bad_answer", () => rawAnswer(200, '{"records":{}}')],
  ["text as gzip", "source_bad_answer", () => rawAnswer(200, "{}", ["Content-Encoding: gzip"])],
  ["one offset for ever", "source_bad_answer", () => rawAnswer(200, '{"records":[],"offset":"itr1/rec1"}')],
];

const raising = (body: string) => (table: string) =>
  `
  create function public.${table}() returns trigger language plpgsql as $$ begin ${body}; return new; end $$;
  create trigger odd before insert or update on public.${table} for each row execute function public.${table}()`;
/** @param statement gets the placeholder of the service's role */
const asOwner = (statement: (us: string) => string) => `
  do $$ begin execute format('${statement("%I")}',
    (select tableowner from pg_tables where (schemaname, tablename) = ('public', '_sync_meta'))); end $$`;
const dropped = (table: string) => `drop function public.${table} cascade`;

/** What makes every write to a table fail in the database. */
const OBJECTS: [
  what: string,
  code: ErrorCode,
  on: (table: string) => string,
  off?: (table: string) => string,
][] = [
  ["a lock", "replica_busy", (table) => `begin; lock table public.${table} in share mode`],
  ["an exclusive lock", "replica_busy", (table) => `lock table public.${table}`],
  [
    "another owner",
    "destination_invalid",
    (table) => `alter table public.${table} owner to pg_monitor`,
    (table) => asOwner((us) => `alter table public.${table} owner to ${us}`),
  ],
  [
    "another owner of an idle table",
    "destination_invalid",
    (table) => `alter table public.${table} owner to pg_monitor`,
    (table) => asOwner((us) => `alter table public.${table} owner to ${us}`),
  ],
  [
    "no rights",
    "destination_invalid",
    (table) => asOwner((us) => `revoke all on public.${table} from ${us}`),
    (table) => asOwner((us) => `grant all on public.${table} to ${us}`),
  ],
  ["a full disk", "replica_refused", raising("raise 'no' using errcode = '53100'"), dropped],
  ["a state of ours", "replica_refused", raising("raise 'no' using errcode = 'BT001'"), dropped],
  [
    "an end of our session",
    "replica_refused",
    raising("perform pg_terminate_backend(pg_backend_pid())"),
    dropped,
  ],
  [
    "row security",
    "destination_invalid",
    (table) => `alter table public.${table} enable row level security, force row level security`,
    (table) => `alter table public.${table} disable row level security`,
  ],
];

const fields = [{ name: "Name", type: "singleLineText" }];
const records = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ fields: { Name: `${index}` } }));

function createSource(names: string[], sizes: Record<string, number> = {}) {
  const { control } = sandbox;
  const id = control.createBase({
    tables: names.map((name) => ({ name, fields, records: records(sizes[name] ?? 2) })),
  });
  const user = { id: `usr${crypto.randomUUID()}`, email: "x@example.com" };
  const key = control.createKey({ bases: { [id]: "create" }, user });
  const tables = new Map(control.dump(id).tables.map((table) => [table.name, table]));
  return {
    id,
    key,
    tableId: (name: string) => tables.get(name)!.id,
    edit(name: string, text: string) {
      const {
        id: tableId,
        records: [record],
      } = tables.get(name)!;
      control.updateRecords(id, tableId, [{ id: record!.id, fields: { Name: text } }]);
    },
  };
}

const current = ({ id }: Pick<Base, "id">) => getBase(fleet.ctx.db, id);

/** Resolves when SQL has this text in the table. */
async function arrived(base: Base, table: string, text: string, timeoutMs = LONG_MS): Promise<void> {
  const sql = await fleet.reader(base);
  const isThere = async () => (await sql`select from ${sql(table)} where name = ${text}`).length > 0;
  await until(() => isThere().catch(() => false), { what: `${text} is in ${table}`, timeoutMs });
}

const isSynced = (base: Base) => base.sync && (!base.settings.live || base.live?.readAt);

async function synced(base: Base): Promise<Base> {
  return until(async () => isSynced(await current(base)) && current(base), {
    what: "it is synced",
    timeoutMs: LONG_MS,
  });
}

/** Expects that exactly these tables fail, each with its code. */
async function named(base: Base, codes: Map<string, ErrorCode>): Promise<void> {
  const failing = async () =>
    Object.fromEntries((await current(base)).failingTables.map(({ name, code }) => [name, code]));
  const expected = Object.fromEntries(codes);
  await until(async () => Bun.deepEquals(await failing(), expected), {
    what: "the broken tables are named",
    timeoutMs: LONG_MS,
  }).catch(async () => expect(await failing()).toEqual(expected));
  expect(await current(base)).toMatchObject({ state: "active", error: null });
}

async function whole(base: Base): Promise<void> {
  await until(async () => (await current(base)).failingTables.length === 0, {
    what: "no table fails",
    timeoutMs: LONG_MS,
  });
  await until(() => expectEqualToSource(fleet, base).then(() => true), {
    what: "SQL equals the source",
    timeoutMs: LONG_MS,
    retryErrors: true,
  });
}

test.concurrent.for(["sweep", "rapid", "live"] as const)(
  "%s: tables that are broken in any way are named, nothing waits for them, and they come back",
  async (mode) => {
    const broken = ANSWERS.map((_, index) => `Answer ${index}`);
    const odd = OBJECTS.map((_, index) => `Object ${index}`);
    const made = createSource(["Well", ...broken, ...odd]);
    const replies = new Map(ANSWERS.map(([, , reply], index) => [made.tableId(broken[index]!), reply]));
    const answerer: Answerer = ({ path }, passed) => {
      const [tableId = ""] = /tbl\w{14}/.exec(path) ?? [];
      return replies.get(tableId)?.(passed);
    };
    const codes = new Map(ANSWERS.map(([, code], index) => [broken[index]!, code]));
    // From the first sync on.
    source.answer(made.id, answerer);
    const settings = { turbo: true, ...MODES[mode] };
    const base = await synced(await fleet.connect(made.id, settings, made.key));
    await named(base, codes);
    source.answer(made.id, null);
    await whole(base);
    // And later, together with those that the database refuses.
    const admin = superuserUrl(hostedUrl((await replicaTarget(fleet.ctx, base)).url));
    const holder = postgres(admin, { max: 1, onnotice: () => {} });
    const sqlName = (name: string) => name.toLowerCase().replace(" ", "_");
    const run = (statement: string) => asAdmin((sql) => sql.unsafe(statement).simple(), admin);
    for (const [index, [what, code, on]] of OBJECTS.entries()) {
      const statement = on(sqlName(odd[index]!));
      await (what.endsWith("lock") ? holder.unsafe(statement).simple() : run(statement));
      codes.set(odd[index]!, code);
    }
    source.answer(made.id, answerer);
    const isIdle = (name: string) => OBJECTS[odd.indexOf(name)]?.[0].endsWith("idle table");
    for (const name of [...broken, ...odd]) if (!isIdle(name)) made.edit(name, "edited");
    for (const text of ["first", "second", "third"]) {
      made.edit("Well", text);
      await arrived(base, "well", text);
    }
    await named(base, codes);
    made.edit("Well", "last");
    await arrived(base, "well", "last");
    source.answer(made.id, null);
    await holder.end({ timeout: 1 });
    for (const [index, [, , , off]] of OBJECTS.entries()) if (off) await run(off(sqlName(odd[index]!)));
    await whole(base);
  },
);

/** Of the changes of other tables, as p95, ms. */
const IN_TIME_MS = 5000;

test.concurrent.for(["sweep", "rapid", "live"] as const)(
  "%s: changes arrive in time while the trigger of one table does not end, and other tables are locked",
  async (mode) => {
    const broken = ["Endless", "Locked", "Both"];
    const made = createSource(["Well", ...broken]);
    const base = await synced(await fleet.connect(made.id, { turbo: true, ...MODES[mode] }, made.key));
    const admin = superuserUrl(hostedUrl((await replicaTarget(fleet.ctx, base)).url));
    const endless = raising("perform pg_sleep(3600)");
    await asAdmin((sql) => sql.unsafe(`${endless("endless")};${endless("both")}`).simple(), admin);
    const holder = postgres(admin, { max: 1, onnotice: () => {} });
    await holder.unsafe("begin; lock table public.locked, public.both").simple();
    for (const name of broken) made.edit(name, "edited");
    const took: number[] = [];
    for (let edit = 0; edit < 30; edit++) {
      const from = performance.now();
      made.edit("Well", `edit ${edit}`);
      await arrived(base, "well", `edit ${edit}`);
      took.push(performance.now() - from);
    }
    expect(took.toSorted((a, b) => a - b)[Math.ceil(took.length * 0.95) - 1]).toBeLessThan(
      IN_TIME_MS * slowness(),
    );
    await holder.end({ timeout: 1 });
    await asAdmin((sql) => sql.unsafe(`${dropped("endless")};${dropped("both")}`).simple(), admin);
    await whole(base);
  },
);

const isSchema = (path: string) => path.endsWith("/tables");
const PARTS: [
  what: string,
  is: (path: string) => boolean,
  reply: Reply,
  named: (base: Base) => string | undefined,
][] = [
  ["a schema of 401", isSchema, ANSWERS[0]![2], (base) => base.schemaError?.code],
  ["a schema of 403", isSchema, ANSWERS[1]![2], (base) => base.schemaError?.code],
  ["a schema without an answer", isSchema, () => null, (base) => base.schemaError?.code],
  ...(
    [
      ["payloads of 401", /\/payloads/, ANSWERS[0]![2]],
      ["payloads without an answer", /\/payloads/, () => null],
      ["webhooks of 503", /\/webhooks/, ANSWERS[6]![2]],
    ] satisfies [string, RegExp, Reply][]
  ).map(([what, pattern, reply]): (typeof PARTS)[number] => [
    what,
    (path) => pattern.test(path),
    reply,
    ({ live }) => (live?.state === "failing" ? live.reason : undefined),
  ]),
];

test.concurrent.for(PARTS)("live: %s are named, and rows arrive meanwhile", async ([, is, reply, name]) => {
  const made = createSource(["Well", "Changed"]);
  const base = await synced(await fleet.connect(made.id, { turbo: true, live: true }, made.key));
  source.answer(made.id, ({ path }, passed) => (is(path) ? reply(passed) : undefined));
  const { control } = sandbox;
  // Records have a field that the schema does not show.
  control.addField(made.id, made.tableId("Changed"), { name: "New", type: "singleLineText" });
  for (const text of ["first", "second", "third"]) {
    made.edit("Well", text);
    made.edit("Changed", text);
    await arrived(base, "well", text);
    await arrived(base, "changed", text);
  }
  const fault = await until(async () => name(await current(base)), {
    what: "it is named",
    timeoutMs: LONG_MS,
  });
  expect(fault).toBeTruthy();
  expect((await current(base)).state).toBe("active");
  source.answer(made.id, null);
  await until(async () => name(await current(base)) === undefined, {
    what: "it is over",
    timeoutMs: LONG_MS,
  });
  await whole(base);
});

test.concurrent.for(["sweep", "rapid", "live"] as const)(
  "%s: an edit is shown while a first sync still reads another table",
  async (mode) => {
    const made = createSource(["Well", "Large"], { Large: 4000 });
    const base = await fleet.connect(made.id, { turbo: true, ...MODES[mode] }, made.key);
    await until(() => fleet.reader(base).then((sql) => sql`select from well`.then(() => true)), {
      what: "the small table is there",
      timeoutMs: LONG_MS,
      retryErrors: true,
    });
    made.edit("Well", "edited");
    await arrived(base, "well", "edited");
    expect((await current(base)).sync).toBeNull();
  },
);
