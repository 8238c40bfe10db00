/** The routes of a resource's operations in the management API. */
import type { TObject } from "@sinclair/typebox";
import { Elysia, t } from "elysia";
import type { Actor } from "../../../core/context";
import type { Account, Role } from "../../../core/control/accounts";
import { bearerAuth } from "../bearer-auth";
import type { ConsoleContext } from "../page-kit";
import { raises } from "../schemas/parts";
import { answerJson } from "./json";
import type { AnyOperation, AnyResource, Params } from "./resource";

interface ApiCall {
  account: Account;
  actor: Actor;
  role: Role;
  userId: string | null;
  params: Params;
  body: unknown;
  query: unknown;
  set: { status?: number | string };
}

interface Routes {
  route(method: string, path: string, run: (call: ApiCall) => Promise<unknown>, hooks: object): void;
}

export function apiOf(ctx: ConsoleContext, about: AnyResource) {
  const app = new Elysia({ tags: [about.tag] }).use(bearerAuth(ctx.db));
  for (const operation of about.operations) {
    const [method, path] = operation.api?.split(" ") ?? [];
    if (!method || !path) continue;
    (app as unknown as Routes).route(
      method,
      path,
      async ({ account, actor, role, userId, params, body, query, set }) => {
        const by = { account, actor, role, userId, user: null };
        const scope = await about.scope(ctx, by, params);
        const target = operation.isOnOne ? await about.find!(ctx, scope, params) : scope;
        // Only what a schema has checked.
        const input = operation.query ? query : operation.body && body;
        const result = await operation.run({ ...ctx, actor }, target, input, by);
        if (operation.text)
          return new Response(String(result), {
            headers: { "content-type": `${operation.text.type}; charset=utf-8` },
          });
        if (!operation.answer) return new Response(null, { status: 204 });
        set.status = operation.status ?? 200;
        return answerJson(operation.answer, result);
      },
      hooksOf(operation, paramsIn(path, about.params)),
    );
  }
  return app;
}

/** Those of the ids that an address has. */
function paramsIn(path: string, params: TObject | undefined) {
  const found = Object.entries(params?.properties ?? {}).filter(([name]) =>
    path.split("/").includes(`:${name}`),
  );
  return found.length === 0 ? undefined : t.Object(Object.fromEntries(found));
}

function hooksOf(operation: AnyOperation, params: TObject | undefined) {
  const { body, query, answer, text, summary, description, status = 200, gone = "Deleted" } = operation;
  const file = text && {
    200: { description: text.description, content: { [text.type]: { schema: { type: "string" } } } },
  };
  return {
    ...(params && { params }),
    ...(body && { body }),
    ...(query && { query }),
    ...(answer && { response: { [status]: answer } }),
    detail: {
      summary,
      ...(description && { description }),
      ...raises(...(operation.raises ?? [])),
      ...(answer ? {} : { responses: file ?? { 204: { description: gone } } }),
    },
  };
}
