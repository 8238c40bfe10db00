/** Injected failures: faults, the throttle, latency, attachment URLs that expire. */
import { beforeEach, describe, expect, test } from "vitest";
import type { FaultOptions } from "../../../apps/sandbox/faults";
import { until } from "../../support/poll";
import { crew, errorOf, type Json, PEOPLE, sandboxScene } from "../../support/sandbox-support";

const scene = sandboxScene();

const people = () => `/${scene.baseId}/${PEOPLE}`;
const get = (query = "pageSize=1", init: RequestInit = {}) =>
  fetch(`${scene.sandbox.url}/v0${people()}?${query}`, {
    headers: { authorization: `Bearer ${scene.sandbox.key}` },
    ...init,
  });

describe("faults", () => {
  test.for([
    ["status_500", 500, "SERVER_ERROR"],
    ["status_503", 503, "RETRIABLE_ERROR"],
    ["billing_limit", 429, "PUBLIC_API_BILLING_LIMIT_EXCEEDED"],
    ["rate_limited_object", 429, "RATE_LIMIT_REACHED"],
    ["unauthorized", 401, "AUTHENTICATION_REQUIRED"],
    ["forbidden", 403, "INVALID_PERMISSIONS_OR_MODEL_NOT_FOUND"],
    ["iterator_lost", 422, "LIST_RECORDS_ITERATOR_NOT_AVAILABLE"],
  ] as const)("%s is answered %i %s as often as requested", async ([kind, status, type]) => {
    scene.sandbox.control.addFault({ kind, count: 2 });
    for (let i = 0; i < 2; i++)
      expect(errorOf(await scene.call("GET", people())).slice(0, 2)).toEqual([status, type]);
    expect((await get()).status).toBe(200);
    expect(scene.sandbox.control.log().map((entry) => entry.fault)).toEqual([kind, kind, undefined]);
  });

  test("rate_limited is the plural form", async () => {
    scene.sandbox.control.addFault({ kind: "rate_limited" });
    const { status, body } = await scene.call("GET", people());
    const message = "Rate limit exceeded. Please try again later";
    expect([status, body]).toEqual([429, { errors: [{ error: "RATE_LIMIT_REACHED", message }] }]);
  });

  test("HTML comes with 502 and with 200, and JSON is cut off", async () => {
    const answers: [number, string][] = [];
    for (const kind of ["status_502_html", "html_200", "broken_json"] as const) {
      scene.sandbox.control.addFault({ kind, count: 1 });
      const answer = await get();
      answers.push([answer.status, await answer.text()]);
    }
    expect(answers[0]).toEqual([502, expect.stringContaining("<html>")]);
    expect(answers[1]).toEqual([200, expect.stringContaining("<html>")]);
    expect(answers[2]).toEqual([200, expect.stringMatching(/^\{"records":\[/)]);
    expect(() => JSON.parse(answers[2]![1])).toThrow();
  });

  test("connections are closed before the answer and within it", async () => {
    // Without a count: Bun's own fetch retries once when a kept connection is closed.
    scene.sandbox.control.addFault({ kind: "reset" });
    await expect(get()).rejects.toThrow();
    scene.sandbox.control.clearFaults();
    scene.sandbox.control.addFault({ kind: "truncated", count: 1 });
    const answer = await get();
    expect(answer.status).toBe(200);
    await expect(answer.text()).rejects.toThrow();
  });

  test("a hanging, a slow and an endless answer last until the client disconnects", async () => {
    scene.sandbox.control.addFault({ kind: "hang", count: 1 });
    await expect(get("", { signal: AbortSignal.timeout(50) })).rejects.toThrow();
    scene.sandbox.control.addFault({ kind: "slow_body", count: 1, delayMs: 5 });
    expect((await (await get()).json()) as Json).toHaveProperty("records");
    scene.sandbox.control.addFault({ kind: "endless_body", count: 1 });
    const endless = await get("", { signal: AbortSignal.timeout(100) });
    await expect(endless.text()).rejects.toThrow();
  });

  test("a list is empty, repeats a page, or never ends", async () => {
    const page = async (offset: unknown = "") =>
      (await scene.call("GET", `${people()}?pageSize=1&offset=${offset}`)).body;
    scene.sandbox.control.addFault({ kind: "empty_list", count: 1 });
    expect(await page()).toEqual({ records: [] });
    const first = await page();
    scene.sandbox.control.addFault({ kind: "repeat_page", count: 1 });
    const repeated = await page(first.offset);
    expect(repeated.records).toEqual(first.records);
    expect(await page(repeated.offset)).toMatchObject({ records: [{ fields: { Name: "Cat" } }] });
    scene.sandbox.control.addFault({ kind: "endless_list" });
    let next: Json | undefined;
    for (let i = 0; i < 10; i++) {
      next = await page(next?.offset);
      expect(next.offset).toEqual(expect.stringMatching(/^itr/));
    }
  });

  test("a fault after a write keeps the write; a fault before it prevents it", async () => {
    const create = () => scene.call("POST", people(), { fields: { Name: "x" } });
    const count = () => scene.sandbox.control.dump(scene.baseId).tables[0]!.records.length;
    scene.sandbox.control.addFault({ kind: "status_503", method: "POST", count: 1 });
    expect([(await create()).status, count()]).toEqual([503, 3]);
    scene.sandbox.control.addFault({ kind: "status_503", method: "POST", count: 1, when: "after" });
    expect([(await create()).status, count()]).toEqual([503, 4]);
  });

  test("a fault applies to its base, table, method, path and turn, expires, and can be removed", async () => {
    const isPlayed = async (options: Partial<FaultOptions>) => {
      const fault = scene.sandbox.control.addFault({ kind: "status_500", ...options });
      const { status } = await get();
      scene.sandbox.control.clearFaults(fault.id);
      return status === 500;
    };
    expect(await isPlayed({ base: scene.baseId, table: PEOPLE, method: "get", path: "pageSize=1$" })).toBe(
      true,
    );
    for (const other of [
      { base: "appOther000000001" },
      { table: "Teams" },
      { method: "POST" },
      { path: "pageSize=2" },
      { after: 1 },
      { probability: 0 },
      { durationMs: -1 },
      { count: 0 },
    ])
      expect(await isPlayed(other), JSON.stringify(other)).toBe(false);
    expect(scene.sandbox.control.faults()).toEqual([]);
    expect(() => scene.sandbox.control.addFault({ kind: "nonsense" as "reset" })).toThrow(
      'There is no fault "nonsense"',
    );
  });

  test("with a probability of a half, half of the requests fail, the same half for the same seed", async () => {
    const played = async () => {
      const fault = scene.sandbox.control.addFault({ kind: "status_500", probability: 0.5, seed: 3 });
      const statuses: number[] = [];
      for (let i = 0; i < 40; i++) statuses.push((await get()).status);
      scene.sandbox.control.clearFaults(fault.id);
      return statuses;
    };
    const statuses = await played();
    expect(statuses.filter((status) => status === 500).length).toBeGreaterThan(8);
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThan(8);
    expect(await played()).toEqual(statuses);
  });
});

describe("the throttle", () => {
  beforeEach(() => scene.sandbox.control.settings({ rateLimitOff: false, penaltyMs: 150 }));

  test("the sixth request within a second is refused, and requests succeed after the penalty", async () => {
    const statuses: number[] = [];
    for (let i = 0; i < 6; i++) statuses.push((await get()).status);
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
    const other = scene.sandbox.control.generate({ records: 1 });
    expect((await scene.call("GET", `/${other}/Projects`)).status).toBe(200);
    const refusals = scene.sandbox.control.log(scene.baseId).at(-1)!;
    expect(refusals.status).toBe(429);
    await expect.poll(async () => (await get()).status, { timeout: 5000, interval: 200 }).toBe(200);
    expect(scene.sandbox.control.logSummary().bases[scene.baseId]!.maxPerSecond).toBeGreaterThanOrEqual(6);
  });

  test("a base can be refused below its limit, until the penalty ends", async () => {
    const base = crew(scene.sandbox);
    const answer = await fetch(`${scene.sandbox.controlUrl}/_sandbox/quota`, {
      method: "POST",
      body: JSON.stringify({ baseId: base, refuse: true }),
    });
    const { atMs } = (await answer.json()) as { atMs: number };
    const status = async () => (await scene.call("GET", `/${base}/Teams`)).status;
    expect(await status()).toBe(429);
    await until(async () => (await status()) === 200, { what: "the penalty is over" });
    const entries = scene.sandbox.control.log(base);
    expect(
      entries.filter(({ status }) => status === 429).every(({ arrivalMs }) => arrivalMs < atMs + 150),
    ).toBe(true);
    expect(entries.at(-1)!.arrivalMs).toBeGreaterThanOrEqual(atMs + 150);
  });

  test("metadata calls count toward the base, two keys share its limit, and lifting the quota removes it", async () => {
    const key = scene.sandbox.control.createKey({ user: { id: "usrOther" } });
    for (let i = 0; i < 5; i++) await scene.call("GET", `/meta/bases/${scene.baseId}/tables`);
    scene.sandbox.control.settings({ rateLimitForm: "object" });
    const refused = await scene.call("GET", people(), undefined, key);
    expect(errorOf(refused)).toEqual([
      429,
      "RATE_LIMIT_REACHED",
      "Rate limit exceeded. Please try again later",
    ]);
    scene.sandbox.control.liftQuota(scene.baseId);
    for (let i = 0; i < 20; i++) expect((await get()).status).toBe(200);
    scene.sandbox.control.liftQuota(scene.baseId, false);
    scene.sandbox.control.resetQuota(scene.baseId);
    expect((await get()).status).toBe(200);
  });

  test("a user has fifty requests per second over all bases", async () => {
    const statuses: number[] = [];
    for (let i = 0; i < 51; i++) statuses.push((await scene.call("GET", "/meta/whoami")).status);
    const entries = scene.sandbox.control.log();
    const isWithinSecond = entries.at(-1)!.arrivalMs - entries[0]!.arrivalMs < 1000;
    expect(statuses.at(-1)).toBe(isWithinSecond ? 429 : 200);
    expect(statuses.slice(0, 50).every((status) => status === 200)).toBe(true);
  });
});

test("latency applies before the change and after it", async () => {
  const size = () => scene.sandbox.control.dump(scene.baseId).tables[0]!.records.length;
  for (const [when, during] of [
    ["before", 3],
    ["after", 4],
  ] as const) {
    scene.renew();
    scene.sandbox.control.settings({ latency: { [when]: { minMs: 300, maxMs: 300 } } });
    const began = performance.now();
    const answer = scene.call("POST", people(), { fields: {} });
    await expect.poll(() => scene.sandbox.control.log().length, { interval: 5 }).toBe(1);
    await expect.poll(() => size(), { interval: 5, timeout: 200 }).toBe(during);
    expect((await answer).status).toBe(200);
    expect(performance.now() - began).toBeGreaterThan(290);
    expect(size()).toBe(4);
  }
});

describe("attachments", () => {
  const files = async () =>
    (await scene.call("GET", `${people()}/recAnn00000000001`)).body.fields?.Files as unknown as Json[];
  const put = (cell: unknown) =>
    scene.call("PATCH", `${people()}/recAnn00000000001`, { fields: { Files: cell } });

  test("are written by URL, kept by id, removed when left out, and refused in any other form", async () => {
    await put([
      { url: "https://example.org/a/pic%20one.png" },
      { url: "https://example.org/b", filename: "b.pdf" },
    ]);
    const [picture, paper] = await files();
    expect(picture).toMatchObject({ filename: "pic one.png", type: "image/png", width: 800, height: 600 });
    expect(picture!.thumbnails).toHaveProperty("small.height", 36);
    expect(paper).toMatchObject({ filename: "b.pdf", type: "application/pdf" });
    await put([{ id: paper!.id }]);
    expect((await files()).map((file) => file.id)).toEqual([paper!.id]);
    for (const bad of [
      [{ url: "ftp://x" }],
      [{ id: "attNone0000000001" }],
      ["https://x.org"],
      { url: "https://x.org" },
    ])
      expect(errorOf(await put(bad))[1]).toBe("INVALID_ATTACHMENT_OBJECT");
  });

  test("have URLs that differ in each read, work for their lifetime, and expire after it", async () => {
    await put([{ url: "https://example.org/a.png" }]);
    const url = async () => String((await files())[0]!.url);
    const [first, second] = [await url(), await url()];
    const listedUrl = ((await (await get()).json()) as Json).records?.[0]?.fields?.Files?.[0]?.url;
    expect(new Set([first, second, String(listedUrl)]).size).toBe(3);
    expect((await fetch(first)).status).toBe(200);
    scene.sandbox.control.advanceClock(2 * 3600_000 - 5000);
    expect((await fetch(first)).status).toBe(200);
    scene.sandbox.control.advanceClock(10_000);
    expect((await fetch(first)).status).toBe(410);
    expect((await fetch(await url())).status).toBe(200);
    expect((await fetch(first.replace(/\/u\/.{5}/, "/u/zzzzz"))).status).toBe(403);
    scene.sandbox.control.settings({ attachmentUrlLifeMs: -1 });
    expect((await fetch(await url())).status).toBe(410);
    const stable = (
      scene.sandbox.control.dump(scene.baseId).tables[0]!.records[0]!.fields.fldFiles000000001 as Json[]
    )[0]!;
    expect((await fetch(String(stable.url))).status).toBe(200);
  });

  test("are uploaded at the content host's path, and can be downloaded", async () => {
    const bytes = Buffer.from("hello \u0000 world");
    const body = { contentType: "text/plain", file: bytes.toString("base64"), filename: "hello.txt" };
    const answer = await scene.call(
      "POST",
      `/${scene.baseId}/recAnn00000000001/Files/uploadAttachment`,
      body,
    );
    const file = answer.body.fields?.fldFiles000000001?.[0];
    expect(file).toMatchObject({ filename: "hello.txt", type: "text/plain", size: bytes.length });
    expect(Buffer.from(await (await fetch(String(file!.url))).arrayBuffer())).toEqual(bytes);
    const large = { ...body, file: Buffer.alloc(5 * 1024 * 1024 + 1).toString("base64") };
    const refused = await scene.call(
      "POST",
      `/${scene.baseId}/recAnn00000000001/fldFiles000000001/uploadAttachment`,
      large,
    );
    expect(refused.status).toBe(422);
  });
});
