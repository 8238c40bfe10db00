/** P1: the proxy is not an open relay. No server outside of the configuration is contacted, whatever a client sends. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type ProxyStack, proxyStack } from "../../support/proxy-stack";
import { httpAnswer, type RawUpstream, rawUpstream, sendRaw } from "../../support/raw-upstream";

let upstream: RawUpstream;
/** Reachable, and not configured. */
let victim: RawUpstream;
let stack: ProxyStack;

beforeAll(async () => {
  [upstream, victim] = [await rawUpstream(), await rawUpstream()];
  stack = await proxyStack({ UPSTREAMS: `api.airtable.com=${upstream.url}` });
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await upstream?.[Symbol.asyncDispose]();
  await victim?.[Symbol.asyncDispose]();
});
beforeEach(() => {
  for (const server of [upstream, victim]) {
    server.requests.length = 0;
    server.answer = (socket) => socket.write(httpAnswer(200, { "Content-Type": "application/json" }, "{}"));
  }
});

const HEADERS = "Authorization: Bearer patSecret.1\r\nConnection: close\r\n";

function raw(target: string, head: string, method = "GET") {
  return sendRaw(stack.proxy.port, `${method} ${target} HTTP/1.1\r\n${head}${HEADERS}\r\n`);
}

test("no form of a target and no header leads to another server, or to another part of the source's", async () => {
  const { host, port } = new URL(victim.url);
  const targets = [
    `http://${host}/v0/appX/T`,
    `http://${host}/api.airtable.com/v0/../../secret`,
    `//${host}/v0/appX/T`,
    `/${host}/v0/appX/T`,
    `/http://${host}/v0/appX/T`,
    `/http:/${host}/v0/appX/T`,
    `/api.airtable.com@${host}/v0/appX/T`,
    `/api.airtable.com:${port}/v0/appX/T`,
    `/api.airtable.com:x@${host}/v0/appX/T`,
    `/api.airtable.com%2f@${host}/v0/appX/T`,
    `/api.airtable.com%00.${host}/v0/appX/T`,
    `/api.airtable.com.${host}/v0/appX/T`,
    `/api.airtable.com\\@${host}/v0/appX/T`,
    `/api.airtable.com/v0@${host}/appX/T`,
    `/api.airtable.com/../${host}/v0/appX/T`,
    `/API.AIRTABLE.COM./v0/appX/T`,
    `/api.airtable.com#@${host}/v0/appX/T`,
    `/api.airtable.com?@${host}/v0/appX/T`,
    "/api.airtable.com/v0/../oauth2/v1/token",
    "/api.airtable.com/v0/%2e%2e/%2e%2e/secret",
    "/localhost/v0/appX/T",
    `/[::1]:${port}/v0/appX/T`,
    `/0x7f000001:${port}/v0/appX/T`,
  ];
  const heads = [
    "Host: proxy\r\n",
    `Host: ${host}\r\n`,
    `Host: proxy\r\nX-Forwarded-Host: ${host}\r\nForwarded: host=${host}\r\n`,
    `Host: proxy\r\nX-Original-URL: http://${host}/\r\nX-Rewrite-URL: http://${host}/\r\n`,
  ];
  for (const target of targets) for (const head of heads) await raw(target, head).catch(() => {});
  await raw(host, "Host: proxy\r\n", "CONNECT").catch(() => {});
  expect(victim.requests).toEqual([]);
  for (const { line } of upstream.requests) expect(line).toMatch(/^GET \/v0\/(?!.*(\/|^)\.\.(\/|$))/);
});

test("a redirect to another server is returned to the client, and not followed with its key", async () => {
  for (const status of [301, 302, 303, 307, 308]) {
    upstream.answer = (socket) =>
      socket.write(httpAnswer(status, { Location: `${victim.url}/v0/appX/T`, "Content-Length": "0" }, ""));
    await raw("/api.airtable.com/v0/appX/T", "Host: proxy\r\n");
  }
  expect(upstream.requests).toHaveLength(5);
  expect(victim.requests).toEqual([]);
});
