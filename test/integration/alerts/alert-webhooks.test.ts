/** Deliveries to webhooks: where they may go, how long they may take, how they are signed. */

import { readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { NotDelivered } from "../../../core/alerts";
import { signatureOf } from "../../../core/alerts/payload";
import { post } from "../../../core/alerts/post";
import { createAuthority } from "../../../core/http";
import { startReceiver } from "../../support/receiver";
import { repoRoot } from "../../support/source-files";

const send = (url: string, allowed: "no" | "loopback" | "yes", options: Parameters<typeof post>[2] = {}) =>
  post({ url, body: "{}", headers: {} }, allowed, options).then(
    () => "arrived",
    (error: unknown) => {
      if (error instanceof NotDelivered) return error.message;
      throw error;
    },
  );

test("only a 2xx counts as delivered, and a redirect is not followed", async () => {
  await using receiver = startReceiver();
  expect(await send(receiver.url(), "loopback")).toBe("arrived");
  receiver.answer = { status: 204 };
  expect(await send(receiver.url(), "loopback")).toBe("arrived");
  for (const status of [301, 302, 307, 308]) {
    receiver.answer = { status, headers: { location: receiver.url("/elsewhere") } };
    expect(await send(receiver.url(), "loopback")).toBe(
      `The receiver answered ${status}; redirects are not followed`,
    );
  }
  receiver.answer = { status: 404 };
  expect(await send(receiver.url(), "loopback")).toBe("The receiver answered 404");
  expect(new Set(receiver.received.map(({ path }) => path))).toEqual(new Set(["/hook"]));
});

test.for([
  "http://127.0.0.1",
  "http://localhost",
  "http://[::1]",
  "http://[::ffff:127.0.0.1]",
  "http://2130706433",
  "http://0x7f.1",
  "http://10.0.0.1",
  "http://192.168.1.1",
  "http://169.254.169.254/latest/meta-data",
  "http://[fd00:ec2::254]",
  "http://100.100.100.200",
])("%s is not a receiver on the internet, and nothing is sent there", async (url) => {
  await using receiver = startReceiver();
  const { port } = new URL(receiver.url());
  const there = new URL(url);
  there.port = port;
  expect(await send(there.href, "no")).toContain("private network");
  expect(receiver.received).toEqual([]);
});

test("a slow receiver is given up in bounded time; an unreachable one is reported", async () => {
  const slow = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Promise<Response>(() => {}) });
  onTestFinished(() => slow.stop(true));
  const url = `http://127.0.0.1:${slow.port}/`;
  // Within a private network, both are one error: no one learns which ports are open.
  const told = "The receiver cannot be reached, did not answer in time, or its certificate cannot be trusted";
  expect(await send(url, "loopback", { timeoutMs: 200 })).toBe(told);
  expect(await send("http://127.0.0.1:1/secret", "loopback")).toBe(told);
  expect(await send("http://nobody.invalid/secret", "loopback")).toBe(
    "We couldn't find nobody.invalid. Check the address",
  );
});

test("over https the certificate must be valid for the requested name", async () => {
  const authority = createAuthority("test");
  const serve = (name: string) => {
    const { certificate, key } = authority.issue([name]);
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      tls: { cert: certificate, key },
      fetch: () => new Response(),
    });
    onTestFinished(() => server.stop(true));
    return `https://localhost:${server.port}/`;
  };
  const ca = authority.certificate;
  expect(await send(serve("localhost"), "loopback", { ca })).toBe("arrived");
  expect(await send(serve("localhost"), "loopback")).toMatch(/certificate cannot be trusted/);
  expect(await send(serve("other.example"), "loopback", { ca })).toMatch(/certificate cannot be trusted/);
});

test("the snippet of the documentation accepts our signature and no other", async () => {
  const [, snippet] = /```js\n([\s\S]*?)```/.exec(readFileSync(join(repoRoot, "docs/alerts.md"), "utf8"))!;
  const path = join(tmpdir(), `basetide-snippet-${crypto.randomUUID()}.mjs`);
  await writeFile(path, snippet!);
  onTestFinished(() => rm(path));
  const { isFromBasetide } = (await import(path)) as {
    isFromBasetide(secret: string, signature: string, body: string): boolean;
  };
  const [secret, body] = ["whsec_a", '{"text":"é"}'];
  const signature = signatureOf(secret, body, new Date());
  expect(isFromBasetide(secret, signature, body)).toBe(true);
  expect(isFromBasetide("whsec_b", signature, body)).toBe(false);
  expect(isFromBasetide(secret, signature, `${body} `)).toBe(false);
  expect(isFromBasetide(secret, signatureOf(secret, body, new Date(Date.now() - 600_000)), body)).toBe(false);
  for (const other of ["", "t=1", "v1=00", signature.slice(0, -2)]) {
    expect(isFromBasetide(secret, other, body)).toBe(false);
  }
});
