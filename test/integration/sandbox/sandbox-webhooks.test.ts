/** The sandbox's webhooks: the requests, what they refuse, and who may create them. */
import { describe, expect, test } from "vitest";
import { errorOf } from "../../support/sandbox-support";
import { DAY_MS, EVERYTHING, filtered, webhookScene } from "../../support/webhook-support";

const scene = webhookScene();
const { hooks, made } = scene;

describe("the requests", () => {
  test("a webhook is created with a secret and for seven days, and listed as in the reference", async () => {
    const before = Date.now();
    const { body } = await hooks("POST", "", {
      notificationUrl: "http://127.0.0.1:9/",
      specification: EVERYTHING,
    });
    expect(Object.keys(body).sort()).toEqual(["expirationTime", "id", "macSecretBase64"]);
    expect(Buffer.from(String(body.macSecretBase64), "base64")).toHaveLength(32);
    expect(Date.parse(String(body.expirationTime)) - before).toBeGreaterThanOrEqual(7 * DAY_MS);
    expect((await hooks("GET")).body).toEqual({
      webhooks: [
        {
          id: body.id,
          specification: EVERYTHING,
          notificationUrl: "http://127.0.0.1:9/",
          cursorForNextPayload: 1,
          isHookEnabled: true,
          areNotificationsEnabled: true,
          expirationTime: body.expirationTime,
          lastSuccessfulNotificationTime: null,
          lastNotificationResult: null,
        },
      ],
    });
    expect((await hooks("DELETE", `/${body.id}`)).status).toBe(200);
    expect((await hooks("GET")).body).toEqual({ webhooks: [] });
    expect(errorOf(await hooks("GET", `/${body.id}/payloads`)).slice(0, 2)).toEqual([404, "NOT_FOUND"]);
  });

  test("an eleventh webhook is refused, and an integration sees only its own two", async () => {
    const key = scene.control.createKey({ isOAuth: true });
    const post = (token?: string) => hooks("POST", "", { specification: EVERYTHING }, token);
    expect([(await post(key)).status, (await post(key)).status, (await post(key)).status]).toEqual([
      200, 200, 422,
    ]);
    for (let i = 0; i < 8; i++) expect((await post()).status).toBe(200);
    expect((await post()).status).toBe(422);
    expect((await hooks("GET")).body.webhooks).toHaveLength(10);
    expect((await hooks("GET", "", undefined, key)).body.webhooks).toHaveLength(2);
  });

  test.for<[string, string, string, string[], string, number]>([
    ["POST", "", "tableData", ["webhook:manage", "data.records:read"], "create", 200],
    ["POST", "", "tableData", ["webhook:manage", "data.records:read"], "edit", 403],
    ["POST", "", "tableData", ["webhook:manage", "schema.bases:read"], "create", 403],
    ["POST", "", "tableFields", ["webhook:manage", "data.records:read"], "create", 403],
    ["POST", "", "tableMetadata", ["webhook:manage", "schema.bases:read"], "create", 200],
    ["POST", "", "tableData", ["data.records:read"], "create", 403],
    ["GET", "/payloads", "tableData", ["webhook:manage", "data.records:read"], "read", 200],
    ["GET", "/payloads", "tableData", ["webhook:manage"], "read", 403],
    ["GET", "/payloads", "tableData", ["webhook:manage", "data.records:read"], "none", 403],
    ["DELETE", "", "tableData", ["webhook:manage"], "read", 403],
    ["POST", "/refresh", "tableData", ["webhook:manage"], "create", 200],
  ])("%s hook%s of %s with scopes %j as %s: %i", async ([method, verb, type, scopes, level, status]) => {
    const specification = filtered({ dataTypes: [type] });
    const isNew = method === "POST" && verb === "";
    const path = isNew ? "" : `/${await made(specification)}${verb}`;
    const key = scene.control.createKey({ scopes, bases: { [scene.baseId]: level as "read" } });
    expect((await hooks(method, path, isNew ? { specification } : undefined, key)).status).toBe(status);
  });

  test.for<[string, unknown]>([
    ["no data types", { options: { filters: {} } }],
    ["a data type that there is not", filtered({ dataTypes: ["cells"] })],
    ["a scope by name", filtered({ recordChangeScope: "Teams" })],
    ["a change type that there is not", filtered({ changeTypes: ["move"] })],
    ["a source that there is not", filtered({ fromSources: ["people"] })],
    ["a field that there is not", filtered({ watchDataInFieldIds: ["fldNope0000000001"] })],
    ["a field by name in includes", filtered({}, { includeCellValuesInFieldIds: ["Name"] })],
    ["an include that is no boolean", filtered({}, { includePreviousCellValues: "yes" })],
    ["an unknown filter", filtered({ watch: [] })],
    ["no options", {}],
    ["nothing", undefined],
  ])("a specification with %s is refused", async ([, specification]) => {
    expect((await hooks("POST", "", { specification })).status).toBe(422);
  });

  test.for(["cursor=0", "cursor=-1", "cursor=x", "limit=51", "limit=0", "page=1"])(
    "payloads with %s are refused",
    async (query) => {
      expect((await hooks("GET", `/${await made()}/payloads?${query}`)).status).toBe(422);
    },
  );

  test("calls count toward the base's five per second", async () => {
    const id = await made();
    scene.control.settings({ rateLimitOff: false });
    const statuses = await Promise.all(
      Array.from({ length: 6 }, async () => (await hooks("GET", `/${id}/payloads`)).status),
    );
    expect(statuses.sort()).toEqual([200, 200, 200, 200, 200, 429]);
  });
});
