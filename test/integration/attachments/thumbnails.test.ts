/** Thumbnails of attachments in the data browser: which there are, what they cost, and what hostile files cannot do. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import { fetchThumbnail } from "../../../core/attachments";
import type { Account } from "../../../core/control/accounts";
import { updateSettings } from "../../../core/control/bases";
import { asker, authByHeader } from "../../support/console";
import { type ProxyStack, proxyStack, type Replicated } from "../../support/proxy-stack";

const PICTURE = { filename: "beach.png", type: "image/png", size: 9, width: 800, height: 400 };
const OTHERS = [
  { filename: "logo.svg", type: "image/svg+xml", size: 9, width: 10, height: 10 },
  { filename: "page.html", type: "text/html", size: 9 },
  { filename: "new.png", size: 9 },
];
const SVG = `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`;
const HTML = "<!doctype html><script>alert(1)</script>";

let stack: ProxyStack;
let album: Replicated;
let sourceBaseId: string;
let ask: (path: string, account?: Account) => ReturnType<ReturnType<typeof asker>>;
let owner: Account;

const calls = () => stack.sandbox.control.log(sourceBaseId).length;
const id = (n: number) => `att${String(n).padStart(14, "0")}`;

beforeAll(async () => {
  stack = await proxyStack({ CONSOLE_URL: "https://console.example" });
  const files = [PICTURE, ...OTHERS].map((file, n) => ({
    id: id(n),
    url: "https://files.example/x",
    ...file,
  }));
  sourceBaseId = stack.sandbox.control.createBase({
    name: "Album",
    tables: [
      {
        name: "Trips",
        fields: [
          { name: "Name", type: "singleLineText" },
          { name: "Photos", type: "multipleAttachments" },
        ],
        records: [{ fields: { Name: "Sea", Photos: files } }, { fields: { Name: "Hills" } }],
      },
    ],
  });
  album = await stack.connect(sourceBaseId);
  await updateSettings(stack.managed, album.base, { attachmentViews: true });
  await album.sync();
  owner = { id: album.base.accountId, email: "a1@example.com", isOperator: false } as Account;
  const request = asker(consoleApp(stack.managed, authByHeader()));
  ask = (path, account = owner) => request(path, { account });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

/** The thumbnails of a page, as `alt` and `src`. */
async function thumbnailsOf(path: string): Promise<Record<string, string>> {
  const { text } = await ask(`/bases/${album.base.id}${path}`);
  const images = [...text.matchAll(/<img ([^>]*)>/g)].map(([, attributes]) => {
    expect(attributes).toContain('loading="lazy"');
    const value = (name: string) => new RegExp(`${name}="([^"]*)"`).exec(attributes!)![1]!;
    return [value("alt"), value("src").replaceAll("&amp;", "&")];
  });
  return Object.fromEntries(images);
}

test("pictures have a thumbnail from the console itself, and other files their name", async () => {
  const grid = await thumbnailsOf("/data/trips");
  expect(Object.keys(grid)).toEqual(["beach.png"]);
  const [{ id: record }] = (await album.rows("trips")).filter(({ name }) => name === "Sea") as [
    { id: string },
  ];
  const whole = await thumbnailsOf(`/data/trips/${record}`);
  expect(Object.keys(whole)).toEqual(["beach.png"]);
  const before = calls();
  for (const src of [...Object.values(grid), ...Object.values(whole)]) {
    expect(src).toMatch(/^\/bases\/bas_\w+\/thumbnails\//);
    const { status, headers, text } = await ask(src);
    expect([status, headers.get("content-type"), text.slice(1, 4)]).toEqual([200, "image/png", "PNG"]);
    expect(headers.get("content-security-policy")).toBe("default-src 'none'; sandbox");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("cache-control")).toMatch(/^private, max-age=\d{4}$/);
  }
  // Both sizes come with one read of the record.
  expect(calls() - before).toBe(1);

  const page = await ask(`/bases/${album.base.id}/data/trips`);
  expect(page.headers.get("content-security-policy")).toContain("img-src 'self' data:;");
});

test("what does not exist, and another account's, is not found, without a call to Airtable", async () => {
  const { "beach.png": src = "" } = await thumbnailsOf("/data/trips");
  const [, table, record, field] = /thumbnails\/(\w+)\/(\w+)\/(\w+)\//.exec(src)!;
  const before = calls();
  for (const wrong of [
    src.replace("small", "full"),
    src.replace("?size=small", ""),
    src.replace(table!, "tblZZZZZZZZZZZZZZ"),
    src.replace(field!, "fldZZZZZZZZZZZZZZ"),
    src.replace(field!, "constructor"),
    src.replace(record!, encodeURIComponent("../x")),
    src.replace(album.base.id, "bas_00000000000000000000"),
  ])
    expect([wrong, (await ask(wrong)).status]).toEqual([wrong, 404]);
  const stranger = { id: "acc_00000000000000000000", email: "b@example.com", isOperator: false } as Account;
  expect((await ask(src, stranger)).status).toBe(404);
  expect(calls()).toBe(before);
});

test.each([
  ["an SVG", SVG],
  ["a page", HTML],
  ["a page behind spaces", `   ${HTML}`],
  ["nothing", ""],
])("%s that is named and typed like a picture is not shown", async (_, content) => {
  const [{ id: record }] = (await album.rows("trips")).filter(({ name }) => name === "Hills") as [
    { id: string },
  ];
  const upload = await fetch(
    `${stack.contentEndpoint}/v0/${sourceBaseId}/${record}/Photos/uploadAttachment`,
    {
      method: "POST",
      headers: { authorization: `Bearer ${stack.sandbox.key}`, "content-type": "application/json" },
      body: JSON.stringify({ contentType: "image/png", file: btoa(content), filename: "x.png" }),
    },
  );
  expect(upload.status).toBe(200);
  const { "x.png": src } = await thumbnailsOf(`/data/trips/${record}`);
  const { status, headers, text } = await ask(src!);
  expect([status, text.includes("alert(1)")]).toEqual([404, false]);
  expect(headers.get("content-security-policy")).toContain("script-src 'self'");
});

test("a thumbnail's address leads to no private network, no redirect is followed, and no body is read without end", async () => {
  let requests = 0;
  const png = "\x89PNG\r\n\x1a\n";
  using server = Bun.serve({
    port: 0,
    fetch: ({ url }) => {
      requests++;
      const { pathname } = new URL(url);
      if (pathname === "/away") return Response.redirect("/good");
      if (pathname === "/large") return new Response(Buffer.from(png + "x".repeat(2_000_000), "latin1"));
      if (pathname === "/hangs") return new Promise<Response>(() => {});
      return new Response(Buffer.from(png, "latin1"));
    },
  });
  const read = (path: string, privateDestinations: "no" | "loopback" = "loopback", host = "127.0.0.1") =>
    fetchThumbnail(
      { config: { privateDestinations, upstreamTimeoutMs: path === "/hangs" ? 100 : 30_000 } },
      "acc_1",
      `http://${host}:${server.port}${path}`,
    );
  expect(await read("/good")).toMatchObject({ type: "image/png" });
  expect(await read("/good", "loopback", "localhost")).toMatchObject({ type: "image/png" });
  expect(await read("/away")).toBeNull();
  expect(await read("/large")).toBeNull();
  await expect(read("/hangs")).rejects.toMatchObject({ code: "source_unavailable" });
  const before = requests;
  for (const host of ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"])
    await expect(read("/good", "no", host)).rejects.toMatchObject({ code: "source_unavailable" });
  expect(requests).toBe(before);
});
