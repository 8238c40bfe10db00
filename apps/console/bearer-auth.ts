/** Authenticates API calls: gives every route behind it the token's `account`, and `actor` for the audit log. */

import { Elysia } from "elysia";
import type { Actor, Db } from "../../core/context";
import { authenticate } from "../../core/control/accounts";
import { permissionFor, requireScope } from "./access";
import { countCall } from "./api-limit";
import { parseJsonBody, requireJson } from "./json-body";

/** Runs before the request is validated: a caller without a token learns nothing about the request schema. */
export function bearerAuth(db: Db) {
  return new Elysia({ name: "bearer-auth" })
    .onParse({ as: "scoped" }, ({ request }, contentType) => parseJsonBody(request, contentType))
    .derive({ as: "scoped" }, async ({ request, route, body }) => {
      const { token, ...account } = await authenticate(db, request.headers.get("authorization"));
      countCall(request);
      requireScope(token, permissionFor(request.method, route));
      requireJson(body, request);
      const actor: Actor = { kind: "token", name: token.name };
      return { account, actor, role: token.role, userId: token.createdBy };
    });
}
