/** The proxy's own headers as used by a script on another origin, in a real browser. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { noBrowser, openBrowser } from "../support/browser";
import { until } from "../support/poll";
import { type ProxyStack, proxyStack } from "../support/proxy-stack";
import { LIMITS } from "../support/quota-limits";

let stack: ProxyStack;
let browser: Browser | undefined;
let page: Page;
let site: Bun.Server<undefined>;
let baseId: string;

beforeAll(async () => {
  if (noBrowser) return;
  stack = await proxyStack();
  baseId = stack.sandbox.control.createBase({
    name: "Tasks",
    tables: [
      {
        name: "Tasks",
        fields: [{ name: "Name", type: "singleLineText" }],
        records: [{ fields: { Name: "Call Ada" } }],
      },
    ],
  });
  const base = await stack.connect(baseId);
  await base.sync();
  site = Bun.serve({
    port: 0,
    fetch: () => new Response("<!doctype html>", { headers: { "content-type": "text/html" } }),
  });
  browser = await openBrowser();
  page = await browser.newPage();
  await page.goto(`http://localhost:${site.port}/`);
});
afterAll(async () => {
  await browser?.close();
  await site?.stop(true);
  await stack?.[Symbol.asyncDispose]();
});

/** A request of the page's own script; "refused" if the browser blocks it, or hides the answer. */
function call(path: string, init: { method?: string; headers?: Record<string, string>; body?: string } = {}) {
  const headers = { authorization: `Bearer ${stack.sandbox.key}`, ...init.headers };
  return page.evaluate(
    async ([url, options]) => {
      try {
        const answer = await fetch(url, options);
        return { status: answer.status, headers: Object.fromEntries(answer.headers) };
      } catch {
        return "refused";
      }
    },
    [`${stack.endpoint}/v0/${path}`, { ...init, headers }] as const,
  );
}

test("a script can ask for the replica, and sees what has answered", async ({ skip }) => {
  skip(noBrowser !== undefined, noBrowser);
  // The first read with a key is always answered by the source.
  const first = await call(`${baseId}/Tasks`, { headers: { "x-basetide-read": "replica" } });
  expect(first).toMatchObject({ status: 200, headers: { "x-basetide-answered-by": "source" } });
  const replica = await call(`${baseId}/Tasks`, { headers: { "x-basetide-read": "replica" } });
  expect(replica).toMatchObject({
    status: 200,
    headers: { "x-basetide-answered-by": "replica", "x-basetide-as-of": expect.stringMatching(/^20/) },
  });
});

test("a script sees that SQL does not show its write yet", async ({ skip }) => {
  skip(noBrowser !== undefined, noBrowser);
  const answer = await call(`meta/bases/${baseId}/tables`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name: "New", fields: [{ name: "Name", type: "singleLineText" }] }),
  });
  expect(answer).toMatchObject({ status: 200, headers: { "x-basetide-sql": "pending" } });
});

test("a script sees when it may retry a call that the proxy has answered with 429", async ({ skip }) => {
  skip(noBrowser !== undefined, noBrowser);
  await stack.ctx
    .db`select quota_block(${`airtable:${baseId}`}, ${LIMITS}::source_limits, 300000, 'rate_limited')`;
  // A call for which the proxy had reserved a time before the pause may still go.
  let answer: Awaited<ReturnType<typeof call>> = "refused";
  const isPaused = async () => {
    answer = await call(`${baseId}/Tasks`);
    return answer !== "refused" && answer.status === 429;
  };
  await until(isPaused, { what: "the pause is active" });
  expect(answer).toMatchObject({ status: 429, headers: { "retry-after": expect.stringMatching(/^\d+$/) } });
});

test("a preflight for any other header is decided by the source", async ({ skip }) => {
  skip(noBrowser !== undefined, noBrowser);
  expect(await call(`${baseId}/Tasks`, { headers: { "x-unknown": "1" } })).toBe("refused");
});
