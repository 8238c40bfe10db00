/**
 * The control API over HTTP: JSON in, JSON out, no key, no rate limit. An invalid call is 400 `{"error":{"message"}}`, and
 * so is one of a browser's page that is not the sandbox's own.
 *
 * | call | body → answer |
 * |---|---|
 * | `POST /_sandbox/load` | `{folder, computed?: "frozen"\|"live", baseId?, name?}` → `{baseId}` |
 * | `POST /_sandbox/generate` | `{records, tables?, seed?, fieldsPerTable?, links?, baseId?, name?}` → `{baseId}` |
 * | `GET /_sandbox/bases` | → `[{id, name, tables, records}]` |
 * | `POST /_sandbox/bases` | `{id?, name?, computed?, tables: [{id?, name, fields, views?, records?}]}` → `{baseId}` |
 * | `DELETE /_sandbox/bases/{base}` | |
 * | `POST /_sandbox/bases/{base}/clone` | a base with the same tables, records and ids → `{baseId}` |
 * | `GET /_sandbox/dump/{base}` | → schema and all records, by field id |
 * | `POST /_sandbox/bases/{base}/tables` | `{id?, name, description?, fields}` → `{tableId}` |
 * | `PATCH`, `DELETE …/tables/{table}` | `{name}` |
 * | `POST …/tables/{table}/records` | `{records: [{id?, createdTime?, fields}], raw?, source?}` → `{ids}` |
 * | `PATCH …/tables/{table}/records` | `{records: [{id, fields}], raw?, source?}` |
 * | `DELETE …/tables/{table}/records` | `{ids, source?}` |
 * | `POST …/tables/{table}/fields` | `{name, type, options?, description?, aggregation?, id?, position?}` → `{fieldId}` |
 * | `PATCH …/fields/{field}` | any of `{name, type, options, description, position, choice: {from, to}}` |
 * | `DELETE …/fields/{field}` | |
 * | `GET`, `POST /_sandbox/settings` | a part of the settings (`settings.ts`) → all of them |
 * | `GET`, `POST /_sandbox/network` | a part of the profile (`network/profile.ts`) → `{profile, open, opened}` |
 * | `DELETE /_sandbox/network/connections` | resets all of them |
 * | `POST /_sandbox/quota` | `{baseId, lifted}`; or `{reset: true, baseId?}` ends penalties; `{baseId, refuse: true}` starts one → `{atMs}` on the log's clock |
 * | `GET`, `POST /_sandbox/caps/{workspace or base}` | any of `{cap: number\|null, overCap: "block"\|"slow", calls, bases: [id]}` → `{workspaceId, month, calls, cap, overCap, isOver}` |
 * | `POST /_sandbox/clock` | `{advanceMs}` |
 * | `GET /_sandbox/bases/{base}/webhooks` | → every webhook as the API lists it, with `isSilent` |
 * | `DELETE …/webhooks/{hook}` | as another user would |
 * | `POST …/webhooks/{hook}/silence` | `{silent?: true}`: makes no more payloads, without reporting it |
 * | `POST …/webhooks/{hook}/fail` | `{code: "INVALID_HOOK"\|"INVALID_FILTERS"\|"INTERNAL_ERROR"}`: an error payload |
 * | `GET /_sandbox/pings?base=` | → every attempt to deliver a notification: `[{baseId, webhookId, url, timestamp, retryNumber, outcome, message?}]` |
 * | `GET`, `POST`, `DELETE /_sandbox/faults` | a fault (`faults.ts`) → it, with its id; `DELETE …/faults/{id}` ends one |
 * | `POST /_sandbox/iterators/kill` | |
 * | `GET`, `POST`, `DELETE /_sandbox/keys` | `{token?, scopes?, bases?, user?, isOAuth?}` → `{token}`; delete: `{token}` |
 * | `POST /_sandbox/users` | `{id, email?, name?}` |
 * | `GET /_sandbox/log?base=`, `GET /_sandbox/log/summary`, `DELETE /_sandbox/log` | |
 * | `POST /_sandbox/reset` | |
 */
import type { KeyOptions } from "./auth";
import type { BaseInput, RecordInput } from "./build";
import type { Control, EditOptions } from "./control";
import { ApiError, ControlError } from "./errors";
import type { FaultOptions } from "./faults";
import type { GenerateOptions } from "./generate";
import type { RouteTarget } from "./http";
import type { LoadOptions } from "./load";
import type { SandboxField, User } from "./model";
import type { NetworkProfile } from "./network";
import { parseQuery } from "./request";
import type { NewField } from "./schema-edit";
import type { SettingsPatch } from "./settings";

interface Call {
  control: Control;
  /** The path's parameters, in order. */
  at: string[];
  body: Record<string, unknown>;
  query: Record<string, string>;
}

type Handler = (call: Call) => unknown;

const BASE = "bases/:";
const TABLE = `${BASE}/tables/:`;
const FIELD = `${TABLE}/fields/:`;
const HOOK = `${BASE}/webhooks/:`;

/** Bodies are trusted to match the table above; the callee reports missing parts. */
const ROUTES: Record<string, Handler> = {
  "POST load": ({ control, body }) => ({ baseId: control.load(body as unknown as LoadOptions) }),
  "POST generate": ({ control, body }) => ({ baseId: control.generate(body as unknown as GenerateOptions) }),
  "GET bases": ({ control }) => control.bases(),
  "POST bases": ({ control, body }) => ({ baseId: control.createBase(body as unknown as BaseInput) }),
  [`POST ${BASE}/clone`]: ({ control, at }) => ({ baseId: control.cloneBase(at[0]!) }),
  [`DELETE ${BASE}`]: ({ control, at }) => control.deleteBase(at[0]!),
  "GET dump/:": ({ control, at }) => control.dump(at[0]!),
  [`POST ${BASE}/tables`]: ({ control, at, body }) => ({
    tableId: control.addTable(at[0]!, body as unknown as Parameters<Control["addTable"]>[1]),
  }),
  [`PATCH ${TABLE}`]: ({ control, at, body }) => control.renameTable(at[0]!, at[1]!, textOf(body, "name")),
  [`DELETE ${TABLE}`]: ({ control, at }) => control.deleteTable(at[0]!, at[1]!),
  [`POST ${TABLE}/records`]: ({ control, at, body }) => ({
    ids: control.createRecords(at[0]!, at[1]!, listOf<RecordInput>(body, "records"), editOptions(body)),
  }),
  [`PATCH ${TABLE}/records`]: ({ control, at, body }) => {
    const records = listOf<{ id: string; fields: Record<string, unknown> }>(body, "records");
    control.updateRecords(at[0]!, at[1]!, records, editOptions(body));
  },
  [`DELETE ${TABLE}/records`]: ({ control, at, body }) =>
    control.deleteRecords(at[0]!, at[1]!, listOf<string>(body, "ids"), editOptions(body)),
  [`POST ${TABLE}/fields`]: ({ control, at, body }) => {
    const { position, ...field } = body as unknown as NewField & { position?: number };
    return { fieldId: control.addField(at[0]!, at[1]!, field, position) };
  },
  [`PATCH ${FIELD}`]: patchField,
  [`DELETE ${FIELD}`]: ({ control, at }) => control.deleteField(at[0]!, at[1]!, at[2]!),
  "GET settings": ({ control }) => control.settings(),
  "POST settings": ({ control, body }) => control.settings(body as SettingsPatch),
  "GET network": ({ control }) => control.network.state(),
  "POST network": ({ control, body }) => {
    control.network.set(body as Partial<NetworkProfile>);
    return control.network.state();
  },
  "DELETE network/connections": ({ control }) => control.network.resetConnections(),
  "POST quota": ({ control, body }) => {
    if (body.reset === true) return control.resetQuota(body.baseId as string | undefined);
    if (body.refuse === true) return { atMs: control.refuseBase(textOf(body, "baseId")) };
    return control.liftQuota(textOf(body, "baseId"), body.lifted !== false);
  },
  "GET caps/:": ({ control, at }) => control.cap(at[0]!),
  "POST caps/:": ({ control, at, body }) => control.cap(at[0]!, body as Parameters<Control["cap"]>[1]),
  [`GET ${BASE}/webhooks`]: ({ control, at }) => control.webhooks.list(at[0]!),
  [`DELETE ${HOOK}`]: ({ control, at }) => control.webhooks.delete(at[0]!, at[1]!),
  [`POST ${HOOK}/silence`]: ({ control, at, body }) =>
    control.webhooks.silence(at[0]!, at[1]!, body.silent !== false),
  [`POST ${HOOK}/fail`]: ({ control, at, body }) =>
    control.webhooks.fail(at[0]!, at[1]!, textOf(body, "code")),
  "GET pings": ({ control, query }) => control.webhooks.pings(query.base),
  "POST clock": ({ control, body }) => control.advanceClock(Number(body.advanceMs)),
  "GET faults": ({ control }) => control.faults(),
  "POST faults": ({ control, body }) => control.addFault(body as unknown as FaultOptions),
  "DELETE faults": ({ control }) => control.clearFaults(),
  "DELETE faults/:": ({ control, at }) => control.clearFaults(Number(at[0])),
  "POST iterators/kill": ({ control }) => control.killIterators(),
  "GET keys": ({ control }) => control.keys().map((key) => ({ ...key, scopes: [...key.scopes] })),
  "POST keys": ({ control, body }) => ({ token: control.createKey(body as KeyOptions) }),
  "DELETE keys": ({ control, body }) => ({ revoked: control.revokeKey(textOf(body, "token")) }),
  "POST users": ({ control, body }) => control.addUser(body as unknown as User),
  "GET log": ({ control, query }) => control.log(query.base),
  "GET log/summary": ({ control }) => control.logSummary(),
  "DELETE log": ({ control }) => control.clearLog(),
  "POST reset": ({ control }) => control.reset(),
};

function patchField({ control, at, body }: Call): void {
  const [baseId, table, field] = at as [string, string, string];
  const { name, type, options, description, position, choice } = body;
  if (typeof type === "string")
    control.retypeField(baseId, table, field, type, options as Record<string, unknown>);
  else if (options !== undefined || description !== undefined)
    control.patchField(baseId, table, field, {
      ...(options !== undefined && { options }),
      ...(description !== undefined && { description }),
    } as Pick<SandboxField, "description" | "options">);
  if (typeof position === "number") control.moveField(baseId, table, field, position);
  if (typeof choice === "object" && choice !== null) {
    const { from, to } = choice as { from: string; to: string };
    control.renameChoice(baseId, table, field, from, to);
  }
  // Last, because the steps above may name the field by its old name.
  if (typeof name === "string") control.renameField(baseId, table, field, name);
}

/** Answers a request to `/_sandbox/…`. */
export async function handleControl(
  control: Control,
  request: Request,
  target: RouteTarget,
): Promise<Response> {
  try {
    refuseForeignPage(request);
    const found = findRoute(target.method, target.segments);
    if (!found) throw new ControlError(`The control API has no ${target.method} ${target.path}.`);
    const text = await request.text();
    const body = text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
    const query = Object.fromEntries(parseQuery(target.queryText));
    return Response.json(found.handler({ control, at: found.at, body, query }) ?? {});
  } catch (error) {
    if (!(error instanceof ControlError || error instanceof ApiError || error instanceof SyntaxError))
      throw error;
    return Response.json({ error: { message: error.message } }, { status: 400 });
  }
}

/**
 * A page of another site, in a browser on the developer's machine, must not control the sandbox: browsers name the origin of
 * their requests, and one that reaches this machine under a name of its own names that.
 *
 * @throws ControlError
 */
function refuseForeignPage({ headers }: Request): void {
  const site = headers.get("sec-fetch-site");
  const origin = headers.get("origin");
  if (site === null && origin === null) return;
  const host = headers.get("host") ?? "";
  const isOwn = (site ?? "same-origin") === "same-origin" || site === "none";
  const isSame = origin === null || URL.parse(origin)?.host === host;
  const isLocal = /^(?:localhost|127(?:\.\d+){3}|\[::1\])(?::\d+)?$/.test(host);
  if (isOwn && isSame && isLocal) return;
  throw new ControlError("A page of another site cannot control the sandbox.");
}

function findRoute(method: string, segments: string[]): { handler: Handler; at: string[] } | undefined {
  for (const [route, handler] of Object.entries(ROUTES)) {
    const [routeMethod, pattern = ""] = route.split(" ");
    const parts = pattern.split("/");
    if (routeMethod !== method || parts.length !== segments.length) continue;
    if (!parts.every((part, i) => part === ":" || part === segments[i])) continue;
    return { handler, at: segments.filter((_, i) => parts[i] === ":") };
  }
  return undefined;
}

function editOptions({ raw, source }: Record<string, unknown>): EditOptions {
  return { raw: raw === true, source: source as EditOptions["source"] };
}

function textOf(body: Record<string, unknown>, name: string): string {
  const value = body[name];
  if (typeof value !== "string") throw new ControlError(`The body needs "${name}", a text.`);
  return value;
}

function listOf<T>(body: Record<string, unknown>, name: string): T[] {
  const value = body[name];
  if (!Array.isArray(value)) throw new ControlError(`The body needs "${name}", a list.`);
  return value as T[];
}
