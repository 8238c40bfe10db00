/** Views over attachments: their rows after a sweep and a proxied write, and what changes of names and settings do. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import type { Account } from "../../../core/control/accounts";
import { getBase, updateSettings } from "../../../core/control/bases";
import { asker, authByHeader } from "../../support/console";
import { type ProxyStack, proxyStack, type Replicated } from "../../support/proxy-stack";

const CONSOLE = "https://console.example";
const IMAGE = { filename: "a.png", type: "image/png", size: 1234, width: 800, height: 600 };
const SHEET = { filename: "b.csv", type: "text/csv", size: 99 };

interface FileRow {
  documents_id: string;
  position: number;
  attachment_id: string;
  filename: string | null;
  type: string | null;
  size: string | null;
  width: number | null;
  height: number | null;
  url: string;
}

let stack: ProxyStack;
let archive: Replicated;
let sourceBaseId: string;
let ids: string[];

beforeAll(async () => {
  // Each sync checks the schema.
  stack = await proxyStack({ CONSOLE_URL: CONSOLE, SCHEMA_POLL_SECONDS: "0.1" });
  const stored = (id: string, file: object) => ({ id, url: "https://files.example/x", ...file });
  sourceBaseId = stack.sandbox.control.createBase({
    name: "Archive",
    tables: [
      {
        name: "Documents",
        fields: [
          { name: "Name", type: "singleLineText" },
          { name: "Files", type: "multipleAttachments" },
        ],
        records: [
          {
            fields: {
              Name: "both",
              Files: [stored("att00000000000001", IMAGE), stored("att00000000000002", SHEET)],
            },
          },
          { fields: { Name: "none" } },
        ],
      },
      {
        name: "Notes",
        fields: [{ name: "Name", type: "singleLineText" }],
        records: [{ fields: { Name: "n" } }],
      },
    ],
  });
  ids = stack.sandbox.control.dump(sourceBaseId).tables[0]!.records.map(({ id }) => id);
  archive = await stack.connect(sourceBaseId);
  await archive.sync();
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const filesOf = (view = "documents__files") =>
  archive.reader<FileRow[]>`
    select * from ${archive.reader(view)} order by attachment_id`.then((rows) => [...rows]);

async function change(settings: Parameters<typeof updateSettings>[2]): Promise<void> {
  await updateSettings(stack.managed, await getBase(stack.ctx.db, archive.base.id), settings);
  await archive.sync();
}

const call = (path: string, body: unknown, method = "POST", endpoint = stack.endpoint) =>
  fetch(`${endpoint}/v0/${sourceBaseId}/${path}`, {
    method,
    headers: { authorization: `Bearer ${stack.sandbox.key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });

test("turned on, each file gets a row with its details, and readers find every table and the same files at any moment", async () => {
  let isOver = false;
  let reads = 0;
  const watching = (async () => {
    while (!isOver) {
      const [row] = await archive.reader.unsafe(
        "select count(*)::int as rows, sum(cardinality(files))::int as files from documents",
      );
      expect({ ...row }).toEqual({ rows: 2, files: 2 });
      reads++;
    }
  })();
  try {
    // Old names would be listed, too.
    await change({ attachmentViews: true, aliasDays: 0 });
  } finally {
    isOver = true;
    await watching;
  }
  expect(reads).toBeGreaterThan(0);
  const place = { documents_id: ids[0], url: expect.stringContaining(`${stack.sandbox.url}/v3/u/`) };
  expect(await filesOf()).toEqual([
    { ...place, ...IMAGE, position: 1, attachment_id: "att00000000000001", size: "1234" },
    {
      ...place,
      ...SHEET,
      position: 2,
      attachment_id: "att00000000000002",
      size: "99",
      width: null,
      height: null,
    },
  ]);
  const [row] = await archive.reader`select files, files__files from documents where id = ${ids[0]!}`;
  expect(row!.files__files).toEqual([
    { id: "att00000000000001", ...IMAGE },
    { id: "att00000000000002", ...SHEET },
  ]);
  expect(row!.files).toEqual((await filesOf()).map(({ url }) => url));
});

test("a write through the proxy shows its files, and their removal, with the response", async () => {
  const created = await call("Documents", {
    fields: { Name: "new", Files: [{ url: "https://files.example/n.png", filename: "n.png" }] },
  });
  const { id, fields } = (await created.json()) as { id: string; fields: { Files: { id: string }[] } };
  const mine = async () => (await filesOf()).filter((row) => row.documents_id === id);
  expect(await mine()).toMatchObject([
    {
      position: 1,
      attachment_id: fields.Files[0]!.id,
      filename: "n.png",
      type: "image/png",
      width: 800,
      height: 600,
    },
  ]);
  const upload = { contentType: "text/plain", file: btoa("uploaded"), filename: "u.txt" };
  const uploaded = await call(`${id}/Files/uploadAttachment`, upload, "POST", stack.contentEndpoint);
  expect(uploaded.status).toBe(200);
  expect((await mine()).map((row) => [row.filename, row.type, row.size]).sort()).toEqual([
    ["n.png", "image/png", expect.any(String)],
    ["u.txt", "text/plain", "8"],
  ]);
  expect((await call(`Documents/${id}`, { fields: { Files: [] } }, "PATCH")).status).toBe(200);
  expect(await mine()).toEqual([]);
  expect((await call(`Documents/${id}`, undefined, "DELETE")).status).toBe(200);
});

test("with links that last, the view has them; only rows of which more than URLs changed are written again", async () => {
  await change({ ownAttachmentUrls: true, history: true });
  const rows = await filesOf();
  expect(rows.map(({ filename, size }) => [filename, size])).toEqual([
    ["a.png", "1234"],
    ["b.csv", "99"],
  ]);
  const app = consoleApp(stack.managed);
  for (const { url, attachment_id } of rows) {
    expect(url.startsWith(`${CONSOLE}/attachments/${archive.base.id}/`)).toBe(true);
    const answer = await app.handle(new Request(url));
    expect(await (await fetch(answer.headers.get("location")!)).text()).toBe(`Attachment ${attachment_id}\n`);
  }
  // The names are not in the links.
  const ask = asker(consoleApp(stack.managed, authByHeader()));
  const account = { id: archive.base.accountId, email: "a1@example.com", isOperator: false } as Account;
  const grid = await ask(`/bases/${archive.base.id}/data/documents`, { account });
  for (const { url, filename } of rows) {
    // A picture is its thumbnail, with the name as its text.
    const link =
      filename === "a.png"
        ? `href="${url}" title="a.png" target="_blank" rel="noopener noreferrer"><img `
        : `href="${url}" target="_blank" rel="noopener noreferrer">${filename}</a>`;
    expect([link, grid.text.includes(link)]).toEqual([link, true]);
  }
  expect(grid.text).not.toContain("files__files");
  const written = async () => [...(await archive.reader`select id, xmin::text from documents order by id`)];
  const before = await written();
  await archive.sync();
  expect(await written()).toEqual(before);
  const renamed = { id: "att00000000000002", filename: "c.csv" };
  stack.sandbox.control.updateRecords(sourceBaseId, "Documents", [
    { id: ids[0]!, fields: { Files: [{ id: "att00000000000001" }, renamed] } },
  ]);
  await archive.sync();
  expect((await filesOf()).map(({ filename }) => filename)).toEqual(["a.png", "c.csv"]);
  // The column with the URLs has not changed.
  const [last] = await archive.reader`
    select old -> 'files__files' -> 1 ->> 'filename' as old, array(select jsonb_object_keys(new)) as columns
    from _sync_history where record_id = ${ids[0]!} order by id desc limit 1`;
  expect({ ...last }).toEqual({ old: "b.csv", columns: ["files__files"] });
  await change({ ownAttachmentUrls: false, history: false });
  expect((await filesOf()).every(({ url }) => url.startsWith(stack.sandbox.url))).toBe(true);
});

test("the view and its column follow renames of the field and the table, and a rebuild", async () => {
  const { control } = stack.sandbox;
  control.renameField(sourceBaseId, "Documents", "Files", "Scans");
  control.renameTable(sourceBaseId, "Documents", "Papers");
  await archive.sync();
  const names = async () => {
    const [row] = await archive.reader<{ names: string[] }[]>`
      select array_agg(relname::text order by relname) as names from pg_class
      where relnamespace = 'public'::regnamespace and relkind in ('r', 'v') and relname !~ '^_'`;
    return row!.names;
  };
  expect(await names()).toEqual(["notes", "papers", "papers__scans"]);
  const [row] = await archive.reader`select papers_id, filename from papers__scans where "position" = 1`;
  expect(row).toEqual({ papers_id: ids[0], filename: "a.png" });
  const oid = async () => (await archive.reader`select 'papers'::regclass::oid as oid`)[0]!.oid;
  const before = await oid();
  control.retypeField(sourceBaseId, "Papers", "Name", "number", { precision: 0 });
  await archive.sync();
  expect(await archive.reader`select name from papers where name is not null`).toEqual([]);
  expect(await oid()).toBe(before);
  expect(await names()).toEqual(["notes", "papers", "papers__scans"]);
  expect((await filesOf("papers__scans")).map(({ filename }) => filename)).toEqual(["a.png", "c.csv"]);
});

test("turned off, the view and its column are dropped without reading a table again", async () => {
  const [before] = await archive.reader`select 'papers'::regclass::oid as oid`;
  await change({ attachmentViews: false });
  expect((await getBase(stack.ctx.db, archive.base.id)).sync?.kind).toBe("sweep");
  const columns = await archive.reader<{ name: string }[]>`
    select attname::text as name from pg_attribute
    where attrelid = ${before!.oid} and attnum > 0 and not attisdropped order by attnum`;
  expect(columns.map(({ name }) => name).toSorted()).toEqual(["created_time", "id", "name", "scans"]);
  await expect(filesOf("papers__scans")).rejects.toMatchObject({ code: "42P01" });
  expect(await archive.rows("papers")).toHaveLength(2);
});
