/** The adapter with the sandbox: complete bases, read as the sync reads them. */
import net from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type SandboxHandle, startSandbox } from "../../../apps/sandbox/server";
import {
  createCellHash,
  type RecordPage,
  type SourceConnection,
  type SourceRecord,
  type SourceSelection,
  type SourceTable,
  selectedSource,
} from "../../../core/source";
import { createAirtable } from "../../../core/source/airtable";
import { splitPage } from "../../../core/source/airtable/split";
import { dataFolder, noDataReason } from "../../support/data";

const never = new AbortController().signal;
/** Every kind of field that the sandbox can generate. */
const ALL_FIELDS = 33;

let sandbox: SandboxHandle;
let connection: SourceConnection;

beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, settings: { rateLimitOff: true } });
  connection = connect(sandbox.key);
});
afterAll(() => sandbox?.stop());

function connect(key: string): SourceConnection {
  return createAirtable({ upstreams: { "api.airtable.com": sandbox.url }, timeoutMs: 30_000 }).connect(key);
}

async function readPages(baseId: string, table: SourceTable): Promise<RecordPage[]> {
  const pages: RecordPage[] = [];
  let offset: string | undefined;
  do {
    const page = await connection.listPage(baseId, table, { offset }, never);
    pages.push(page);
    offset = page.offset;
  } while (offset !== undefined);
  return pages;
}

function recordsOf(pages: RecordPage[]): SourceRecord[] {
  return pages.flatMap((page) => Array.from({ length: page.size }, (_, index) => page.record(index)));
}

function fingerprintsOf(pages: RecordPage[]): [string, bigint][] {
  return pages.flatMap((page) =>
    Array.from({ length: page.size }, (_, index): [string, bigint] => [
      page.id(index),
      page.fingerprint(index),
    ]),
  );
}

/** Signed URLs differ in every answer, including the dump. */
function withoutUrls(records: unknown): unknown {
  return JSON.parse(JSON.stringify(records, (key, value) => (key === "url" ? "" : value)));
}

/** Reads every table twice and compares it with the sandbox's contents. */
async function expectWholeBase(baseId: string): Promise<void> {
  const { tables } = await connection.getSchema(baseId, never);
  const dump = sandbox.control.dump(baseId);
  expect(tables.map(({ id }) => id)).toEqual(dump.tables.map(({ id }) => id));
  for (const [index, table] of tables.entries()) {
    const pages = await readPages(baseId, table);
    const byId = (one: SourceRecord, other: SourceRecord) => (one.id < other.id ? -1 : 1);
    expect(withoutUrls(recordsOf(pages).sort(byId))).toEqual(
      withoutUrls([...dump.tables[index]!.records].sort(byId)),
    );
    expect(fingerprintsOf(await readPages(baseId, table))).toEqual(fingerprintsOf(pages));
  }
}

test("a generated base is read completely, and a second read has the same fingerprints", async () => {
  const baseId = sandbox.control.generate({ records: 500, tables: 2, fieldsPerTable: ALL_FIELDS, seed: 3 });
  await expectWholeBase(baseId);
  const [table] = (await connection.getSchema(baseId, never)).tables;
  expect(table!.fields.filter(({ type }) => type === "unknown")).toEqual([]);
  const [page] = await readPages(baseId, table!);
  const holding = Array.from({ length: page!.size }, (_, index) => page!.hasAttachments(index));
  expect(new Set(holding)).toEqual(new Set([true, false]));
});

test("a changed record has another fingerprint, and no other record has", async () => {
  const baseId = sandbox.control.generate({ records: 250, links: 0, fieldsPerTable: 12, seed: 4 });
  const [table] = (await connection.getSchema(baseId, never)).tables;
  const before = new Map(fingerprintsOf(await readPages(baseId, table!)));
  const [changed] = [...before.keys()].slice(120);
  const fields = { [table!.primaryFieldId]: "Changed" };
  sandbox.control.updateRecords(baseId, table!.id, [{ id: changed!, fields }]);
  const after = fingerprintsOf(await readPages(baseId, table!));
  expect(after.filter(([id, fingerprint]) => before.get(id) !== fingerprint).map(([id]) => id)).toEqual([
    changed,
  ]);
});

test("its pages have the form that is split without parsing", async () => {
  const baseId = sandbox.control.generate({ records: 100, fieldsPerTable: ALL_FIELDS, seed: 5 });
  const [table] = (await connection.getSchema(baseId, never)).tables;
  const url = `${sandbox.url}/v0/${baseId}/${table!.id}?returnFieldsByFieldId=true`;
  const answer = await fetch(url, { headers: { authorization: `Bearer ${sandbox.key}` } });
  expect(splitPage(Buffer.from(await answer.arrayBuffer()))?.ids.length).toBe(100);
});

describe("records by id", () => {
  test("are the existing ones, 100 at once", async () => {
    const baseId = sandbox.control.generate({ records: 150, links: 0, fieldsPerTable: 8, seed: 6 });
    const [table] = (await connection.getSchema(baseId, never)).tables;
    const all = recordsOf(await readPages(baseId, table!));
    const ids = all.slice(30, 129).map(({ id }) => id);
    const page = await connection.listByIds(baseId, table!, [...ids, "recMissing0000000"], {}, never);
    expect(page.offset).toBeUndefined();
    expect(recordsOf([page]).map(({ id }) => id)).toEqual(ids);
    expect(recordsOf([page])).toEqual(all.slice(30, 129));
  });

  test("are returned one by one, or reported missing", async () => {
    sandbox.control.settings({ notFoundMode: "legacy" });
    const baseId = sandbox.control.generate({ records: 1, links: 0, fieldsPerTable: 8, seed: 7 });
    const [table] = (await connection.getSchema(baseId, never)).tables;
    const [record] = recordsOf(await readPages(baseId, table!));
    expect(await connection.getRecord(baseId, table!.id, record!.id, never)).toEqual(record);
    sandbox.control.deleteRecords(baseId, table!.id, [record!.id]);
    expect(await connection.getRecord(baseId, table!.id, record!.id, never)).toBeNull();
    sandbox.control.settings({ notFoundMode: "pat" });
  });
});

test("a list that the source has forgotten is reported as lost", async () => {
  const baseId = sandbox.control.generate({ records: 150, links: 0, seed: 8 });
  const [table] = (await connection.getSchema(baseId, never)).tables;
  const { offset } = await connection.listPage(baseId, table!, {}, never);
  sandbox.control.killIterators();
  await expect(connection.listPage(baseId, table!, { offset }, never)).rejects.toMatchObject({
    code: "source_iterator_lost",
  });
});

test("a filter and a sort reach the source, short or long", async () => {
  const baseId = sandbox.control.generate({ records: 150, links: 0, fieldsPerTable: 8, seed: 9 });
  const [table] = (await connection.getSchema(baseId, never)).tables;
  const field = table!.primaryFieldId;
  const all = recordsOf(await readPages(baseId, table!));
  const filter = `RECORD_ID()='${all[7]!.id}'`;
  const long = `OR(${Array<string>(300).fill(filter).join(",")})`;
  for (const formula of [filter, long]) {
    const options = { filter: formula, sort: [{ field, direction: "desc" as const }] };
    const page = await connection.listPage(baseId, table!, options, never);
    expect(recordsOf([page])).toEqual([all[7]]);
  }
});

test("with 95 of 100 fields omitted a page is at least ten times smaller on the wire", async () => {
  const fields = Array.from({ length: 100 }, (_, index) => ({
    name: `Field ${index}`,
    type: "singleLineText",
  }));
  // Digits of hashes, which no compression makes much shorter than others.
  const cell = createCellHash("any");
  const records = Array.from({ length: 100 }, (_, row) => ({
    fields: Object.fromEntries(fields.map(({ name }) => [name, cell([row, name]).slice(0, 30)])),
  }));
  const baseId = sandbox.control.createBase({ name: "Wide", tables: [{ name: "Wide", fields, records }] });
  await using relay = await countingRelay(sandbox.url);
  const upstreams = { "api.airtable.com": relay.url };
  const plain = createAirtable({ upstreams, timeoutMs: 30_000 }).connect(sandbox.key);
  const [table] = (await plain.getSchema(baseId, never)).tables;
  const omitted = table!.fields.slice(5).map(({ id }) => [id, "omitted"] as const);
  const selection: SourceSelection = {
    newTables: "copy",
    tables: { [table!.id]: { copied: true, fields: Object.fromEntries(omitted) } },
  };
  const bytesOf = async (source: SourceConnection) => {
    const [copied] = (await source.getSchema(baseId, never)).tables;
    const before = relay.bytes();
    const page = await source.listPage(baseId, copied!, {}, never);
    expect(page.size).toBe(100);
    return { bytes: relay.bytes() - before, fields: Object.keys(page.record(0).fields).length };
  };
  const whole = await bytesOf(plain);
  const some = await bytesOf(selectedSource(plain, { selection, hash: cell }));
  expect([whole.fields, some.fields]).toEqual([100, 5]);
  expect(whole.bytes / some.bytes).toBeGreaterThanOrEqual(10);
});

/** Counts the bytes of answers. */
async function countingRelay(url: string): Promise<{ url: string; bytes(): number } & AsyncDisposable> {
  let bytes = 0;
  const sockets = new Set<net.Socket>();
  const server = net.createServer((client) => {
    const source = net.connect(Number(new URL(url).port), new URL(url).hostname);
    for (const socket of [client, source]) {
      sockets.add(socket);
      socket.on("error", () => {});
    }
    source.on("data", (chunk) => {
      bytes += chunk.length;
    });
    client.pipe(source);
    source.pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    bytes: () => bytes,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test("a key can read its user and its bases, and a wrong one is refused", async () => {
  const baseId = sandbox.control.generate({ records: 0, seed: 10, name: "Mine" });
  expect((await connection.whoami(never)).id).toMatch(/^usr/);
  expect(await connection.listBases(never)).toContainEqual({
    id: baseId,
    name: "Mine",
    permission: "create",
  });
  await expect(connect("patWrong.key").whoami(never)).rejects.toMatchObject({ code: "source_key_refused" });
  await expect(connection.getSchema("appMissing0000000", never)).rejects.toMatchObject({
    code: "source_forbidden",
  });
});

describe.skipIf(dataFolder === undefined)(dataFolder === undefined ? noDataReason : "a real base", () => {
  test.each(["cmip7-data-request", "unlocking-the-airwaves"])("(%s) is read completely", async (folder) => {
    await expectWholeBase(sandbox.control.load({ folder: join(dataFolder!, folder) }));
  });
});
