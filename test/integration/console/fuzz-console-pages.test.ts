/** Every page and form of the console, with any path, query and fields: a page or a redirect, and no internal error. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import { createBase } from "../../../core/control/bases";
import { errorCodes } from "../../../core/errors";
import { openQueue } from "../../../core/queue";
import { NOTIFICATION_MAC_HEADER } from "../../../core/source/airtable/webhooks";
import { asker, authByHeader } from "../../support/console";
import { GOOD_KEY, type TestControl, testControl } from "../../support/control-support";
import { anyJson, anyText, fuzz } from "../../support/fuzz";

let control: TestControl;
let ask: ReturnType<typeof asker>;
let app: ReturnType<typeof consoleApp>;
let account: Awaited<ReturnType<TestControl["addAccount"]>>;
let baseId: string;
const routes: { method: string; path: string }[] = [];

beforeAll(async () => {
  control = await testControl();
  // The operator's pages read the queue's tables.
  await (await openQueue(control.ctx, control.ctx.config.databaseUrl!, { isWorker: false })).close();
  const config = { ...control.ctx.config, apiRequestsPerMinute: Number.MAX_SAFE_INTEGER };
  app = consoleApp({ ...control.ctx, config }, authByHeader());
  ask = asker(app);
  account = await control.addAccount("fuzz@example.com");
  // The user whom the fake sign-in signs in.
  await control.ctx.db`insert into users (id, name, email) values ('usr_test', 'Test', 'test@example.com')`;
  const base = await createBase(control.ctx, account.id, {
    platform: "airtable",
    apiKey: GOOD_KEY,
    sourceBaseId: "appOne",
  });
  baseId = base.id;
  const isPage = ({ path }: { path: string }) => !/^\/(api|openapi|hooks|metrics|readyz|healthz)/.test(path);
  for (const { method, path } of app.routes.filter(isPage)) {
    // The fake has no part of the real sign-in; and calls after the deletion of a base could not use it.
    if (["GET", "POST"].includes(method) && !/sign|verif|password|session|delete|oauth2|\*/.test(path))
      routes.push({ method, path });
  }
});
afterAll(() => control?.[Symbol.asyncDispose]());

const NAMES =
  "name email role platform api_key base_id kind schema url database_id message region paused turbo".split(
    " ",
  );
const likely = fc.constantFrom(
  "airtable",
  GOOD_KEY,
  "appTwo",
  "new",
  "external",
  "public",
  "on",
  "owner",
  "postgres://127.0.0.1:1/x",
);
const fields = fc.dictionary(
  fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...NAMES) }, { weight: 1, arbitrary: anyText }),
  fc.oneof(likely, anyText),
  { maxKeys: 6, noNullPrototype: true },
);
/** The routes are known only when the test runs. */
const anyAsk = fc
  .tuple(fc.nat(), fc.option(anyText, { freq: 2 }), fields, fc.boolean(), fc.boolean())
  .map(([at, id, form, isHtmx, isOperator]) => {
    const { method, path } = routes[at % Math.max(1, routes.length)] ?? { method: "GET", path: "/" };
    const filled = path.replace(/:\w+\??/g, () => encodeURIComponent((id ?? baseId).toWellFormed()));
    const query = new URLSearchParams(form).toString();
    return method === "GET"
      ? { path: `${filled}?${query}`, isHtmx, isOperator }
      : { path: filled, form, isHtmx, isOperator };
  });

test("there are pages and forms to test", () => {
  expect(routes.filter(({ method }) => method === "GET").length).toBeGreaterThan(10);
  expect(routes.filter(({ method }) => method === "POST").length).toBeGreaterThan(10);
});

fuzz(
  "any page and any form, requested with any input, is answered",
  500,
  fc.asyncProperty(anyAsk, async ({ path, isOperator, ...rest }) => {
    const asked = { account: { ...account, isOperator }, ...rest };
    const { status, text } = await ask(path, asked);
    expect(status, text).toBeGreaterThanOrEqual(200);
    expect(status, text).toBeLessThan(500);
  }),
);

fuzz(
  "a notification with any bytes, base and signature is refused with a code",
  300,
  fc.asyncProperty(
    fc.option(anyText),
    fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      anyJson().map((json) => Buffer.from(JSON.stringify(json))),
    ),
    fc.option(fc.oneof(fc.stringMatching(/^hmac-sha256=[0-9a-f]{0,70}$/), fc.stringMatching(/^[ -~]*$/))),
    async (id, body, mac) => {
      const headers = new Headers(mac === null ? {} : { [NOTIFICATION_MAC_HEADER]: mac });
      const path = `/hooks/airtable/${encodeURIComponent((id ?? baseId).toWellFormed())}`;
      const response = await app.handle(
        new Request(`http://console${path}`, { method: "POST", headers, body: Buffer.from(body) }),
      );
      expect(response.status).toBeGreaterThanOrEqual(400);
      expect(response.status).toBeLessThan(500);
      expect(Object.keys(errorCodes)).toContain((await response.json()).error.code);
    },
  ),
);
