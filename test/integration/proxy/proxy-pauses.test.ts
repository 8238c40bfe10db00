/** Clients during a pause that is longer than the proxy waits: they retry its 429 like the source's. */
import Airtable from "airtable";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../support/poll";
import { type ProxyStack, proxyStack, type Replicated } from "../../support/proxy-stack";
import { LIMITS } from "../../support/quota-limits";

const TIMEOUT_MS = 500;
/** More than twice the wait. */
const PAUSE_MS = 3000;

let stack: ProxyStack;
let base: Replicated;
let baseId: string;

beforeAll(async () => {
  stack = await proxyStack({ UPSTREAM_TIMEOUT_MS: String(TIMEOUT_MS) });
  baseId = stack.sandbox.control.createBase({
    name: "Tasks",
    tables: [{ name: "Tasks", fields: [{ name: "Name", type: "singleLineText" }] }],
  });
  base = await stack.connect(baseId);
  await base.sync();
}, 60_000);
afterAll(() => stack?.[Symbol.asyncDispose]());

const pause = () =>
  stack.ctx.db`select quota_block(${`airtable:${baseId}`}, ${LIMITS}::source_limits, ${PAUSE_MS}, '', 5)`;

/** Calls until the proxy answers 429 itself: a call for which it had reserved a time before the pause may still go. */
async function refusedNow(): Promise<void> {
  await until(
    async () => {
      const answer = await fetch(`${stack.endpoint}/v0/${baseId}/Tasks`, {
        headers: { authorization: `Bearer ${stack.sandbox.key}` },
      });
      const text = await answer.text();
      return answer.status === 429 && text.includes('"sender":"proxy"');
    },
    { what: "the pause is active" },
  );
}

async function names(): Promise<unknown[]> {
  return (await base.rows("tasks")).map((row) => row.name).sort();
}

test("a write that is refused costs its replica nothing: no read version is taken for it", async () => {
  const versions = async () => {
    let version = "";
    await stack.withOwner(base, async (sql) => {
      const [row] = await sql<{ last_value: string }[]>`select last_value from public_swap._versions`;
      version = row!.last_value;
    });
    return version;
  };
  await pause();
  await refusedNow();
  const before = await versions();
  const answers = await Promise.all(
    Array.from({ length: 20 }, () =>
      fetch(`${stack.endpoint}/v0/${baseId}/Tasks`, {
        method: "POST",
        headers: { authorization: `Bearer ${stack.sandbox.key}`, "content-type": "application/json" },
        body: JSON.stringify({ fields: { Name: "refused" } }),
      }),
    ),
  );
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([429]));
  expect(await versions()).toBe(before);
});

test("airtable.js repeats them until they succeed, and each succeeds once", async () => {
  const table = new Airtable({ apiKey: stack.sandbox.key, endpointUrl: stack.endpoint }).base(baseId)(
    "Tasks",
  );
  await pause();
  await refusedNow();
  const wanted = ["js 0", "js 1", "js 2", "js 3"];
  await Promise.all(wanted.map((Name) => table.create({ Name })));
  expect((await names()).filter((name) => String(name).startsWith("js"))).toEqual(wanted);
}, 120_000);

test("urllib3, as used by pyairtable, honors Retry-After", async ({ skip }) => {
  const hasRequests = Bun.spawnSync(["python3", "-c", "import requests"]).exitCode === 0;
  skip(!hasRequests, "Python's requests is not installed on this machine");
  // The retries that pyairtable configures: without Retry-After they end within seconds.
  const program = `
import os, requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry
session = requests.Session()
session.mount("http://", HTTPAdapter(max_retries=Retry(
    total=5, backoff_factor=0.1, status_forcelist=(429,), allowed_methods=None)))
session.headers["Authorization"] = "Bearer " + os.environ["KEY"]
session.post("${stack.endpoint}/v0/${baseId}/Tasks", json={"fields": {"Name": "py"}}).raise_for_status()`;
  await pause();
  await refusedNow();
  const child = Bun.spawn(["python3", "-c", program], {
    env: { ...process.env, KEY: stack.sandbox.key },
    stderr: "pipe",
  });
  expect([await new Response(child.stderr).text(), await child.exited]).toEqual(["", 0]);
  expect((await names()).filter((name) => name === "py")).toHaveLength(1);
});
