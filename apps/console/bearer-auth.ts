/** Who asks: the account of the bearer token, as `account` for every route behind this. */

import { Elysia } from "elysia";
import type { Db } from "../../core/context";
import { authenticate } from "../../core/control";

/** Before the validation of the request: who has no token learns nothing about the form of a call. */
export function bearerAuth(db: Db) {
  return new Elysia({ name: "bearer-auth" }).derive({ as: "scoped" }, async ({ request }) => ({
    account: await authenticate(db, request.headers.get("authorization")),
  }));
}
