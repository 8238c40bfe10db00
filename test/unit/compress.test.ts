import { expect, test } from "vitest";
import { compressed } from "../../core/http";

const LONG = "<p>a base, a table, a record</p>".repeat(200);

function answered(
  accept: string | undefined,
  headers: Record<string, string> = {},
  body: string | null = LONG,
) {
  const request = new Request(
    "http://console/",
    accept === undefined ? {} : { headers: { "accept-encoding": accept } },
  );
  const init = {
    status: 201,
    headers: { "content-type": "text/html; charset=utf-8", vary: "Cookie", ...headers },
  };
  return compressed(request, new Response(body, init));
}

test("a page is compressed for clients that accept gzip, and otherwise unchanged", async () => {
  for (const accept of ["gzip", "br, gzip;q=0.5", "deflate, GZIP ; q=1.0"]) {
    const answer = await answered(accept, { "set-cookie": "a=b" });
    expect([accept, answer.status, answer.headers.get("content-encoding")]).toEqual([accept, 201, "gzip"]);
    expect(answer.headers.get("vary")).toBe("Cookie, Accept-Encoding");
    expect(answer.headers.get("set-cookie")).toBe("a=b");
    const bytes = await answer.bytes();
    expect(bytes.length).toBeLessThan(LONG.length / 10);
    expect(new TextDecoder().decode(Bun.gunzipSync(bytes))).toBe(LONG);
  }
});

test("an answer that is short, already compressed, or for another client stays as it is", async () => {
  const cases: Parameters<typeof answered>[] = [
    [undefined],
    ["br"],
    ["gzip;q=0"],
    ["gzip; q=0.00"],
    ["gzipped"],
    ["gzip", { "content-encoding": "br" }],
    ["gzip", { "content-type": "image/png" }],
    ["gzip", {}, "<p>short</p>"],
    ["gzip", {}, null],
  ];
  for (const one of cases) {
    const answer = await answered(...one);
    expect(answer.headers.get("content-encoding")).toBe(one[1]?.["content-encoding"] ?? null);
    expect(await answer.text()).toBe(one[2] === undefined ? LONG : (one[2] ?? ""));
    expect(answer.status).toBe(201);
  }
});
