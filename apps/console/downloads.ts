/** Serves files for customers' programs. They contain no account data. */
import { readFileSync } from "node:fs";
import { Elysia } from "elysia";
import { appPath } from "../../core/app-path";
import { REDIRECT_PATH } from "../../views/base/snippets";
import { securityHeaders } from "../../views/render";

const redirect = readFileSync(appPath("apps/proxy/redirect.mjs"), "utf8");

export function downloadRoutes() {
  return new Elysia({ name: "downloads" }).get(
    REDIRECT_PATH,
    () =>
      new Response(redirect, {
        headers: {
          ...securityHeaders,
          "content-type": "text/javascript; charset=utf-8",
          "content-disposition": 'attachment; filename="basetide-redirect.mjs"',
        },
      }),
    { detail: { hide: true } },
  );
}
