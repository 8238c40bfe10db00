/** Attachments with our URLs: what rows show, where a link leads, and what ends it. */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import type { SandboxHandle } from "../../../apps/sandbox/server";
import { listChanges } from "../../../core/control/audit";
import { type Base, getBase, revokeAttachmentLinks, updateSettings } from "../../../core/control/bases";
import { quotaUse } from "../../../core/control/budgets";
import { claimEpoch, openReplica } from "../../../core/replica";
import { startFleet } from "../../support/fleet";
import { until } from "../../support/poll";
import { type ProxyStack, proxyStack, type Replicated } from "../../support/proxy-stack";

const CONSOLE = "https://console.example";
const TABLE = "Documents";
const HOUR_MS = 3600_000;

let stack: ProxyStack;
/** A counter: all tests share one sandbox, whose clock only moves forward. */
let clockMs = 0;

beforeAll(async () => {
  stack = await proxyStack({ CONSOLE_URL: CONSOLE });
});
afterAll(() => stack?.[Symbol.asyncDispose]());
afterEach(() => {
  stack.sandbox.control.clearFaults();
  stack.sandbox.control.settings({ rateLimitOff: true });
});

interface Documents extends Replicated {
  sourceBaseId: string;
  tableId: string;
  ids: string[];
  /** The links in `files` of each row, by name. */
  files(): Promise<Record<string, string[]>>;
}

/** A base with one file in every record. */
function archive({ control }: SandboxHandle, count = 2): string {
  return control.createBase({
    name: "Archive",
    tables: [
      {
        name: TABLE,
        fields: [
          { name: "Name", type: "singleLineText" },
          { name: "Files", type: "multipleAttachments" },
        ],
        records: Array.from({ length: count }, (_, index) => ({
          fields: { Name: `d${index}`, Files: [file(index)] },
        })),
      },
    ],
  });
}

/** Such a base, connected and synced; with our links unless specified otherwise. */
async function documents(count = 2, ownAttachmentUrls = true): Promise<Documents> {
  const sourceBaseId = archive(stack.sandbox, count);
  const [table] = stack.sandbox.control.dump(sourceBaseId).tables;
  const replicated = await stack.connect(sourceBaseId);
  if (ownAttachmentUrls) await updateSettings(stack.managed, replicated.base, { ownAttachmentUrls });
  await replicated.sync();
  return {
    ...replicated,
    sourceBaseId,
    tableId: table!.id,
    ids: table!.records.map(({ id }) => id),
    async files() {
      const rows = await replicated.rows("documents");
      return Object.fromEntries(rows.map((row) => [row.name as string, row.files as string[]]));
    },
  };
}

let made = 0;
/** As stored. */
function file(index: number) {
  const id = `att${String(made++).padStart(14, "0")}`;
  return {
    id,
    url: `https://files.example/${index}.txt`,
    filename: `${index}.txt`,
    size: 10,
    type: "text/plain",
  };
}

/** A console: each has its own cache of URLs. */
function opener() {
  const app = consoleApp(stack.managed);
  return (link: string, method = "GET", headers?: Record<string, string>) =>
    app.handle(new Request(link, { method, ...(headers && { headers }) }));
}

async function bytesBehind(response: Response): Promise<string> {
  expect(response.status).toBe(302);
  return (await fetch(response.headers.get("location")!)).text();
}

function expireSourceUrls() {
  clockMs += 3 * HOUR_MS;
  stack.sandbox.control.settings({ clockOffsetMs: clockMs });
}

const requests = (sourceBaseId: string) => stack.sandbox.control.log(sourceBaseId).length;
const current = (base: Base) => getBase(stack.ctx.db, base.id);

test("a row's link opens its attachment long after the source's URL of that time has expired", async () => {
  const { files, base, tableId, ids, sync } = await documents(2, false);
  const [before] = (await files()).d0!;
  expect(before).toContain(stack.sandbox.url);
  await updateSettings(stack.managed, base, { ownAttachmentUrls: true });
  await sync();
  const [link] = (await files()).d0!;
  expect(link).toMatch(
    new RegExp(
      `^${CONSOLE}/attachments/${base.id}/${tableId}/${ids[0]}/fld\\w{14}/att\\w{14}\\?sig=[\\w-]{22}$`,
    ),
  );

  expireSourceUrls();
  expect((await fetch(before!)).status).toBe(410);
  const open = opener();
  const answer = await open(link!);
  expect(await bytesBehind(answer)).toBe(`Attachment ${link!.match(/att\w{14}/)![0]}\n`);
  expect(answer.headers.get("location")!.startsWith(`${stack.sandbox.url}/v3/u/`)).toBe(true);
  expect(answer.headers.get("cache-control")).toMatch(/^private, max-age=(5\d\d\d|6000)$/);
  expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
  expect(answer.headers.get("cross-origin-resource-policy")).toBe("cross-origin");

  const head = await open(link!, "HEAD");
  expect([head.status, head.headers.get("location"), await head.text()]).toEqual([
    302,
    answer.headers.get("location"),
    "",
  ]);
});

test("no sweep writes rows with our links, however old the source's URLs get", async () => {
  const { sync, files, base, reader, ownerUrl } = await documents(5);
  const before = await files();
  const written = () => reader`select xmin::text from documents order by id`;
  const versions = await written();
  expireSourceUrls();
  await sync();
  // Another worker has no cache, and compares in SQL.
  const replica = openReplica({ url: ownerUrl, schema: base.database.schema });
  await claimEpoch(replica);
  await replica.close();
  await sync();
  expect(await files()).toEqual(before);
  expect(await written()).toEqual(versions);
  const runs = await stack.ctx.db`
    select sum(updated)::integer as updated from sync_runs where base_id = ${base.id} and kind = 'sweep'`;
  expect(runs[0]!.updated ?? 0).toBe(0);
});

test("rows written through the proxy have our links at once, and the links work", async () => {
  const { sourceBaseId, ids, files } = await documents();
  const call = (path: string, body: unknown, method = "POST", endpoint = stack.endpoint) =>
    fetch(`${endpoint}/v0/${sourceBaseId}/${path}`, {
      method,
      headers: { authorization: `Bearer ${stack.sandbox.key}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const created = await call(TABLE, {
    fields: { Name: "new", Files: [{ url: "https://files.example/new.txt" }] },
  });
  expect(created.status).toBe(200);
  const [link] = (await files()).new!;
  expect(link!.startsWith(`${CONSOLE}/attachments/`)).toBe(true);

  const open = opener();
  await bytesBehind(await open(link!));
  const upload = { contentType: "text/plain", file: btoa("uploaded"), filename: "u.txt" };
  const path = `${ids[0]}/Files/uploadAttachment`;
  expect((await call(path, upload, "POST", stack.contentEndpoint)).status).toBe(200);
  const links = (await files()).d0!;
  expect(links).toHaveLength(2);
  // A recently read record is read again for its new attachments.
  await bytesBehind(await open(links[0]!));
  expect(await bytesBehind(await open(links[1]!))).toBe("uploaded");
});

test("a lookup's attachments open through links of the record that looks them up", async () => {
  const { control } = stack.sandbox;
  const sourceBaseId = control.createBase({
    name: "Orders",
    computed: "frozen",
    tables: [
      {
        name: TABLE,
        fields: [
          { name: "Name", type: "singleLineText" },
          {
            name: "Files",
            type: "multipleLookupValues",
            options: { isValid: true, result: { type: "multipleAttachments" } },
          },
        ],
        records: [{ fields: { Name: "d0", Files: [file(0)] } }],
      },
    ],
  });
  const { base, sync, rows } = await stack.connect(sourceBaseId);
  await updateSettings(stack.managed, base, { ownAttachmentUrls: true });
  await sync();
  const [row] = await rows("documents");
  const [link] = row!.files as string[];
  expect(link!.startsWith(`${CONSOLE}/attachments/${base.id}/`)).toBe(true);
  expect(await bytesBehind(await opener()(link!))).toContain("Attachment att");
});

test("a forged link, one of another base and one to a missing attachment get the same answer", async () => {
  const { files, sourceBaseId } = await documents();
  const other = await documents();
  const [[link], [second], [foreign]] = [(await files()).d0!, (await files()).d1!, (await other.files()).d0!];
  const open = opener();
  const sigOf = (url: string) => new URL(url).searchParams.get("sig")!;
  const withSig = (url: string, sig: string) => url.replace(/sig=.*/, `sig=${sig}`);
  const before = requests(sourceBaseId);
  const forged = [
    withSig(link!, sigOf(second!)),
    withSig(link!, sigOf(foreign!)),
    withSig(link!, "A".repeat(22)),
    withSig(link!, ""),
    link!.replace(/\?.*/, ""),
    link!.replace(/att\w{14}/, "att00000000000000"),
    link!.replace(/bas_\w+/, "bas_00000000000000000000"),
    link!.replace(/bas_\w+/, "%00"),
  ];
  const answers = await Promise.all(
    forged.map(async (url) => {
      const answer = await open(url, "GET", { accept: "application/json" });
      const { error } = (await answer.json()) as { error: { code: string; message: string } };
      return [answer.status, error.code, error.message];
    }),
  );
  expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
  expect(answers[0]).toEqual([404, "not_found", expect.stringContaining("revoked")]);
  // None of them caused a request to the source.
  expect(requests(sourceBaseId)).toBe(before);
});

test("an attachment that was deleted at the source is not found", async () => {
  const { files, sourceBaseId, ids } = await documents();
  const [[link], [other]] = [(await files()).d0!, (await files()).d1!];
  stack.sandbox.control.deleteRecords(sourceBaseId, TABLE, [ids[0]!]);
  stack.sandbox.control.updateRecords(sourceBaseId, TABLE, [{ id: ids[1]!, fields: { Files: null } }]);
  const open = opener();
  expect((await open(link!)).status).toBe(404);
  const before = requests(sourceBaseId);
  expect([(await open(other!)).status, (await open(other!)).status]).toEqual([404, 404]);
  expect(requests(sourceBaseId)).toBe(before + 1);
});

test("revoking ends every link at once, in each console, and a sync writes new ones", async () => {
  const { base, files, sync } = await documents();
  const [link] = (await files()).d0!;
  const open = opener();
  await bytesBehind(await open(link!));
  await revokeAttachmentLinks(stack.managed, await current(base));
  // Also where its URL is still cached.
  expect((await open(link!)).status).toBe(404);
  await sync();
  const [renewed] = (await files()).d0!;
  expect(renewed).not.toBe(link);
  expect((await open(link!)).status).toBe(404);
  await bytesBehind(await open(renewed!));
  const [entry] = await listChanges(stack.ctx.db, { accountId: base.accountId, limit: 1 });
  expect(entry).toMatchObject({ action: "base.attachment_links_revoked", subject: base.id });
});

test("when links are disabled, rows have the source's URLs again, and earlier links still work", async () => {
  const { base, files, sync } = await documents();
  const [link] = (await files()).d0!;
  await updateSettings(stack.managed, base, { ownAttachmentUrls: false });
  await sync();
  expect((await files()).d0![0]!.startsWith(`${stack.sandbox.url}/v3/u/`)).toBe(true);
  await bytesBehind(await opener()(link!));
  await revokeAttachmentLinks(stack.managed, await current(base));
  expect((await opener()(link!)).status).toBe(404);
});

test("a base that never had links has none to revoke", async () => {
  const { base } = await documents(1, false);
  await expect(revokeAttachmentLinks(stack.managed, base)).rejects.toMatchObject({ code: "conflict" });
});

test("I4: two hundred links that are opened at once, and again, take a few requests within the quota", async () => {
  const { files, sourceBaseId } = await documents(200);
  const links = Object.values(await files()).flat();
  stack.sandbox.control.settings({ rateLimitOff: false });
  const before = requests(sourceBaseId);
  const open = opener();
  const answers = await Promise.all(links.map((link) => open(link)));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([302]));
  expect(new Set(answers.map(({ headers }) => headers.get("location"))).size).toBe(200);
  await Promise.all(links.map((link) => open(link)));
  const log = stack.sandbox.control.log(sourceBaseId).slice(before);
  expect(log.length).toBeLessThanOrEqual(5);
  expect(log.filter(({ status }) => status !== 200)).toEqual([]);
  const month = async () => (await quotaUse(stack.ctx.db, { platform: "airtable", sourceBaseId })).month;
  const areCounted = async () => (await month()).console + (await month()).client >= log.length;
  await until(areCounted, { what: "the requests are counted" });
});

test("a failing source is reported, with the time for a retry, and is asked again then", async () => {
  const { files, sourceBaseId } = await documents();
  const [link] = (await files()).d0!;
  const open = opener();
  const answered = async () => {
    const answer = await open(link!, "GET", { accept: "application/json" });
    const { error } = (await answer.json()) as { error: { code: string; message: string } };
    return [answer.status, error.code, Number(answer.headers.get("retry-after")) > 0];
  };
  const fault = stack.sandbox.control.addFault({ base: sourceBaseId, kind: "status_503" });
  expect(await answered()).toEqual([502, "source_unavailable", true]);
  stack.sandbox.control.clearFaults(fault.id);
  await bytesBehind(await open(link!));
});

test("a refused key of the base is not shown to the holder of a link", async () => {
  const { base, files } = await documents();
  const [link] = (await files()).d0!;
  const key = stack.sandbox.control.createKey();
  await updateSettings(stack.managed, base, { apiKey: key });
  stack.sandbox.control.revokeKey(key);
  const answer = await opener()(link!, "GET", { accept: "application/json" });
  const said = await answer.text();
  expect([answer.status, answer.headers.get("retry-after")]).toEqual([502, "10"]);
  expect(said).not.toMatch(/key|token|auth/i);
});

test("a running worker writes new links when they are revoked, the source's URLs when they are disabled, and views when they are enabled, in live mode too", async () => {
  await using fleet = await startFleet({ env: { CONSOLE_URL: CONSOLE } });
  const { ctx, sandbox } = fleet;
  for (const live of [false, true]) {
    const sourceBaseId = archive(sandbox);
    const base = await fleet.connect(sourceBaseId, { ownAttachmentUrls: true, live });
    await fleet.synced(base.id);
    const sql = await fleet.reader(base);
    const link = async () => {
      const rows = await sql<{ files: string[] }[]>`select files from documents order by name`;
      // I6: all of them are of the same kind, at any moment.
      expect(new Set(rows.map(({ files }) => files[0]!.split("/")[2])).size).toBe(1);
      return rows[0]!.files[0]!;
    };
    const first = await link();
    expect(first.startsWith(`${CONSOLE}/attachments/${base.id}/`)).toBe(true);
    await revokeAttachmentLinks(ctx, base);
    const second = await until(async () => (await link()) !== first && link(), { what: "another link" });
    expect(second.split("?")[0]).toBe(first.split("?")[0]);
    await updateSettings(ctx, base, { ownAttachmentUrls: false });
    await until(async () => (await link()).startsWith(sandbox.url), { what: "the source's URL is back" });
    const files = () => sql<{ filename: string }[]>`select filename from documents__files order by filename`;
    await updateSettings(ctx, base, { attachmentViews: true });
    const shown = await until(() => files().catch(() => undefined), { what: "a view over the attachments" });
    expect(shown.map(({ filename }) => filename)).toEqual(["0.txt", "1.txt"]);
    await updateSettings(ctx, base, { attachmentViews: false });
    const isGone = () =>
      files().then(
        () => false,
        (error) => error.code === "42P01",
      );
    await until(isGone, { what: "the view is gone" });
  }
});
