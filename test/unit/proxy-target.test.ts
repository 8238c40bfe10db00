import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseTarget } from "../../apps/proxy/target";
import type { Call } from "../../core/source";

const upstreams = { "api.airtable.com": "http://up:1", "content.airtable.com": "http://content:2" };
const APP = "appAAAAAAAAAAAAAA";

const ownHosts = new Set(["proxy:4000"]);

const parse = (method: string, target: string, host = "proxy:4000") =>
  parseTarget(method, `http://${host}${target}`, { upstreams, ownHosts });

test.for<[method: string, path: string, call: Call]>([
  ["GET", `${APP}/Tasks`, { kind: "read" }],
  ["HEAD", `${APP}/Tasks`, { kind: "read" }],
  ["OPTIONS", `${APP}/Tasks`, { kind: "read" }],
  ["POST", `${APP}/Tasks/listRecords`, { kind: "read" }],
  ["POST", `${APP}/Tasks`, { kind: "write", tableRef: "Tasks", ids: [] }],
  ["POST", `${APP}/Tasks/?`, { kind: "write", tableRef: "Tasks", ids: [] }],
  ["PATCH", `${APP}/My%20Tasks%2F1`, { kind: "write", tableRef: "My Tasks/1", ids: [] }],
  ["PUT", `${APP}/a+b`, { kind: "write", tableRef: "a+b", ids: [] }],
  ["PATCH", `${APP}/%F0%9F%92%A1`, { kind: "write", tableRef: "💡", ids: [] }],
  ["PATCH", `${APP}/50%25`, { kind: "write", tableRef: "50%", ids: [] }],
  ["PATCH", `${APP}/Tasks/rec1`, { kind: "write", tableRef: "Tasks", ids: ["rec1"] }],
  ["DELETE", `${APP}/Tasks/rec1?x`, { kind: "write", tableRef: "Tasks", ids: ["rec1"] }],
  [
    "DELETE",
    `${APP}/Tasks?records[]=rec1&records%5B%5D=rec2`,
    { kind: "write", tableRef: "Tasks", ids: ["rec1", "rec2"] },
  ],
  [
    "DELETE",
    `${APP}/Tasks?records=rec1&records[1]=rec2&view=x`,
    { kind: "write", tableRef: "Tasks", ids: ["rec1", "rec2"] },
  ],
  [
    "POST",
    `${APP}/rec1/My%20Files/uploadAttachment`,
    { kind: "upload", recordId: "rec1", fieldRef: "My Files" },
  ],
  ["POST", `${APP}/Tasks/sync/abc`, { kind: "sync_csv" }],
  ["POST", `${APP}/Tasks/rec1/comments`, { kind: "other" }],
  ["PATCH", `${APP}/Tasks/rec1/comments/com1`, { kind: "other" }],
  ["POST", `meta/bases/${APP}/tables`, { kind: "schema" }],
  ["PATCH", `meta/bases/${APP}/tables/tbl1/fields/fld1`, { kind: "schema" }],
  ["GET", `meta/bases/${APP}/tables`, { kind: "read" }],
  ["POST", "meta/bases", { kind: "other" }],
  ["POST", `bases/${APP}/webhooks`, { kind: "other" }],
  ["POST", "entAAA/dt1/getRecords", { kind: "other" }],
])("%s /v0/%s", ([method, path, call]) => {
  expect(parse(method, `/api.airtable.com/v0/${path}`)).toMatchObject({ call });
});

test.for([
  [`${APP}/Tasks`, APP],
  [`%61ppAAAAAAAAAAAAAA/Tasks`, APP],
  [`/${APP}//Tasks`, APP],
  [`meta/bases/${APP}/tables`, APP],
  [`bases/${APP}/webhooks/ach1/payloads`, APP],
  ["meta/bases", undefined],
  ["meta/whoami", undefined],
  ["entAAA/dt1/getRecords", undefined],
  ["app-x/y", undefined],
])("the quota of /v0/%s is that of %s", ([path, baseId]) => {
  expect(parse("GET", `/api.airtable.com/v0/${path}`)).toMatchObject({ baseId });
});

test.for([
  [`/api.airtable.com/v0/${APP}/a%2Fb%20c/?`, `http://up:1/v0/${APP}/a%2Fb%20c/?`],
  [`/api.airtable.com/v0/${APP}/..a..%2F...`, `http://up:1/v0/${APP}/..a..%2F...`],
  [
    `/api.airtable.com/v0/${APP}/rec1/a%2Fb/uploadAttachment`,
    `http://up:1/v0/${APP}/rec1/a%2Fb/uploadAttachment`,
  ],
  ["/api.airtable.com//v0//a/", "http://up:1/v0//a/"],
  ["//api.airtable.com/v0/a", "http://up:1/v0/a"],
  ["/API.Airtable.com/v0/a?x=1+2&y[]=%5B", "http://up:1/v0/a?x=1+2&y[]=%5B"],
  ["/content.airtable.com/v0/a?b?c", "http://content:2/v0/a?b?c"],
  ["/api.airtable.com/v0/a?next=/../../x", "http://up:1/v0/a?next=/../../x"],
  ["/api.airtable.com/v0/app1/50%25+", "http://up:1/v0/app1/50%25+"],
  ["/api.airtable.com/v0", "http://up:1/v0"],
])("P1: %s is sent to %s, byte by byte", ([target, url]) => {
  const parsed = parse("GET", target!);
  expect(typeof parsed === "string" ? parsed : parsed.address + parsed.path).toBe(url);
});

describe("a path without a host", () => {
  const urlOf = (target: string, host?: string) => {
    const parsed = parse("GET", target, host);
    return typeof parsed === "string" ? parsed : parsed.address + parsed.path;
  };

  test.for([
    ["api.airtable.com", `/v0/${APP}/T`, `http://up:1/v0/${APP}/T`],
    ["content.airtable.com", `/v0/${APP}/T`, `http://content:2/v0/${APP}/T`],
    ["content.airtable.com:443", "/v0/a", "http://content:2/v0/a"],
    ["api.airtable.com:4000", "//v0//a", "http://up:1/v0//a"],
    ["api.airtable.com", "/v0", "http://up:1/v0"],
    ["proxy:4000", `/v0/${APP}/T?a=/../b`, `http://up:1/v0/${APP}/T?a=/../b`],
    ["proxy:4000", "//v0/a", "http://up:1/v0/a"],
  ])("uses the host that it is sent to, or else the first upstream: %s %s", ([host, target, url]) => {
    expect(urlOf(target!, host)).toBe(url);
  });

  test.for([
    ["content.airtable.com", "/api.airtable.com/v0/a", "http://up:1/v0/a"],
    ["api.airtable.com", "/content.airtable.com/v0/a", "http://content:2/v0/a"],
    ["elsewhere.example", "/api.airtable.com/v0/a", "http://up:1/v0/a"],
  ])("is ignored if the path names a host: %s %s", ([host, target, url]) => {
    expect(urlOf(target!, host)).toBe(url);
  });

  test.for([
    ["elsewhere.example", "/v0/a", "host_not_allowed"],
    ["proxy", "/v0/a", "host_not_allowed"],
    ["proxy:4001", "/v0/a", "host_not_allowed"],
    ["api.airtable.com.elsewhere.example", "/v0/a", "host_not_allowed"],
    ["api.airtable.com.", "/v0/a", "host_not_allowed"],
    ["api.airtable.com", "/oauth2/v1/token", "path_not_allowed"],
    ["api.airtable.com", "/elsewhere.example/v0/a", "path_not_allowed"],
    ["proxy:4000", "/v1/a", "host_not_allowed"],
  ])("is not forwarded: %s %s", ([host, target, refusal]) => {
    expect(urlOf(target!, host)).toBe(refusal);
  });
});

describe("P1: what is not forwarded", () => {
  test.for([
    "/",
    "",
    "/evil.com/v0/a",
    "/api.airtable.com.evil.com/v0/a",
    "/api.airtable.com@evil.com/v0/a",
    "/api.airtable.com:80/v0/a",
    "/api.airtable.com%2Fv0/a",
    "/api%2Eairtable.com/v0/a",
    "/constructor/v0/a",
    "/__proto__/v0/a",
    "/http://api.airtable.com/v0/a",
  ])("%s has no configured host", (target) => {
    expect(parse("GET", target)).toBe("host_not_allowed");
  });

  test.for([
    "/api.airtable.com/",
    "/api.airtable.com",
    "/api.airtable.com/v1/a",
    "/api.airtable.com/v0x/a",
    "/api.airtable.com/oauth2/v1/token",
    "/api.airtable.com/%760/a",
  ])("%s is not below v0", (target) => {
    expect(parse("GET", target)).toBe("path_not_allowed");
  });

  test.for([
    "v0/%2e%2e%2fadmin",
    "v0/a/..%2f..%2f..%2fadmin",
    "v0/..%5cadmin",
    "v0/%252e%252e/admin",
    "v0/%%32e%2%65/admin",
    "v0/a%2F..%2Fb",
    "v0/%zz%2f..%2fb",
    "v0/50%",
    "v0/appA%2f50%/",
    "v0/appA/%ff",
    "v0/..;/b",
    "v0/.%00./b",
    "v0/appA/a%5Cb",
    "v0/appA/a%255Cb",
    `v0/appA/a%${"25".repeat(9)}41`,
    // Requests that the gate would stop, without the gate.
    "v0/appA/../appB/T",
    "v0/appA/.",
    "v0/appA/T/..\\..\\appB\\T\\rec1",
    "v0/appA/T#x",
    "v0/appA/a b",
    // A slash within an id.
    "v0/appA%2FT/rec1",
    "v0/meta%2Fbases/appA/tables",
    "v0/appA/T/rec1%2Fcomments",
  ])("%s is ambiguous", (rest) => {
    expect(parse("GET", `/api.airtable.com/${rest}`)).toBe("path_ambiguous");
  });

  test("any path leads to a configured address, below v0, or nowhere", () => {
    const part = fc.oneof(
      fc.constantFrom(
        "..",
        "%2e%2e",
        "%2E.",
        "..%2f",
        "%5c..",
        ".",
        "",
        "v0",
        "api.airtable.com",
        "@",
        "\\",
        "evil.com",
      ),
      fc.webSegment(),
    );
    fc.assert(
      fc.property(
        fc.constantFrom("proxy:4000", "x", ...Object.keys(upstreams)),
        fc.array(part, { maxLength: 8 }),
        (host, parts) => {
          // As Bun provides it: a URL, normalized.
          const requestUrl = new URL(`http://${host}/${parts.join("/")}`).href;
          const target = parseTarget("GET", requestUrl, { upstreams, ownHosts });
          if (typeof target === "string") return;
          const sent = new URL(target.address + target.path);
          expect(sent.href).toBe(target.address + target.path);
          expect(Object.values(upstreams)).toContain(sent.origin);
          expect(sent.pathname).toMatch(/^\/v0(\/|$)/);
        },
      ),
      { numRuns: 2000 },
    );
  });
});
