/**
 * The protocol's own conformance suite against `/mcp`. It knows revisions up to 2025-11-25; `mcp.test.ts` has the newest one,
 * with the protocol's own client. It cannot send a token, so a relay adds it.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import { createAgentToken } from "../../../core/control/accounts";
import { newId } from "../../../core/ids";
import { type TestControl, testControl } from "../../support/control-support";

const SUITE = createRequire(import.meta.url).resolve("@modelcontextprotocol/conformance/dist/index.js");

/** Scenarios that test what a server may offer and ours does not, or that call tools of the suite's own example. */
const NOT_APPLICABLE: Record<string, string[]> = {
  "needs a tool of the suite's example": [
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-with-logging",
    "tools-call-error",
    "tools-call-with-progress",
    "json-schema-2020-12",
  ],
  "needs a resource of the suite's example": [
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
  ],
  "asks the client something: our tools never do": [
    "tools-call-sampling",
    "tools-call-elicitation",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
  ],
  "needs a session, and the endpoint is stateless": ["server-sse-polling", "server-sse-multiple-streams"],
  "needs a capability that is not announced": [
    "logging-set-level",
    "completion-complete",
    "resources-subscribe",
    "resources-unsubscribe",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
  ],
};

let control: TestControl;
let token: string;
let relay: ReturnType<typeof Bun.serve>;

beforeAll(async () => {
  control = await testControl();
  const { ctx } = control;
  const account = await control.addAccount("conformance@example.org");
  const agent = { id: newId("agent"), accountId: account.id, name: "Suite" };
  await ctx.db`insert into agents (id, account_id, name, may_propose, created_by)
    values (${agent.id}, ${account.id}, ${agent.name}, false, 'me')`;
  token = await createAgentToken(ctx.db, agent, { scopes: ["agent:read"] });
  const app = consoleApp(ctx);
  relay = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const headers = new Headers(request.headers);
      headers.set("authorization", `Bearer ${token}`);
      return app.handle(new Request(request.url, { method: request.method, headers, body: request.body }));
    },
  });
});
afterAll(async () => {
  await relay?.stop(true);
  await control?.[Symbol.asyncDispose]();
});

test("all scenarios of the conformance suite that apply", async () => {
  const folder = await mkdtemp(join(tmpdir(), "conformance-"));
  try {
    const inapplicable = Object.values(NOT_APPLICABLE).flat();
    const baseline = join(folder, "baseline.yml");
    await writeFile(baseline, `server:\n${inapplicable.map((name) => `  - ${name}\n`).join("")}`);
    const url = `http://localhost:${relay.port}/mcp`;
    const command = [process.execPath, SUITE, "server", "--url", url, "--suite", "all"];
    const suite = Bun.spawn([...command, "--expected-failures", baseline, "-o", folder], {
      stdout: "pipe",
      stderr: "pipe",
    });
    const output = (await new Response(suite.stdout).text()) + (await new Response(suite.stderr).text());
    // One that passes although it is listed fails, too.
    expect([await suite.exited, output]).toEqual([0, output]);
    const ran = [...output.matchAll(/^[✓✗] (\S+): \d+ passed/gm)].map(([, name]) => name);
    expect(ran.filter((name) => !inapplicable.includes(name!)).sort()).toEqual([
      "dns-rebinding-protection",
      "ping",
      "resources-list",
      "server-initialize",
      "tools-list",
    ]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
