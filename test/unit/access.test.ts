/** The permission that each route of the console needs, over the routes that exist. */
import { expect, test } from "vitest";
import { permissionFor } from "../../apps/console/access";
import { can, isInScope, type Permission, roles, scopes } from "../../core/control/accounts";
import { publicConsole } from "../support/api-description";

const PUBLIC =
  /^\/(docs|docs\/.*|skills\/.*|theme|openapi|healthz|readyz|metrics|assets\/:file|downloads\/.*|status\/.*|attachments\/.*|sign-in.*|auth\/.*|sign-out|signup|verify-email|forgot-password|reset-password|oauth2\/(token|revoke)|\.well-known\/.*|hooks\/.*)?$/;

const needed = publicConsole.routes
  .filter(
    ({ method, path }) => ["GET", "POST", "PATCH", "PUT", "DELETE"].includes(method) && !PUBLIC.test(path),
  )
  .map(({ method, path }) => ({ method, path, permission: permissionFor(method, path) }));
const routesWith = (permission: Permission) =>
  needed.filter((one) => one.permission === permission).map(({ method, path }) => `${method} ${path}`);

test("what changes the account needs more than `read`, unless it is listed here", () => {
  const changes = needed.filter(({ method }) => method !== "GET");
  const open = changes.filter(({ permission }) => permission === "read").map(({ path }) => path);
  expect(open.sort()).toEqual(["/bases/:id/sql", "/bases/:id/sql/csv", "/bases/:id/sql/rows"]);
  const own = changes.filter(({ permission, path }) => permission === "own" && !path.startsWith("/operator"));
  expect(own.map(({ path }) => path).sort()).toEqual([
    "/account/alerts",
    "/account/members/:id/remove",
    "/account/password",
    "/account/sessions/:id/revoke",
    "/account/sessions/revoke-others",
    "/account/sign-in/services/:provider/unlink",
    "/account/sign-in/two-factor",
    "/account/sign-in/two-factor/codes",
    "/account/sign-in/two-factor/confirm",
    "/account/sign-in/two-factor/disable",
    "/account/switch",
    "/bases/:id/sql/history/clear",
    "/invitation",
  ]);
});

test("passwords of databases need `credentials`, and people need `members`", () => {
  expect(routesWith("credentials").filter((route) => route.includes("/api/"))).toEqual([
    "GET /api/v1/bases/:id/credentials",
    "POST /api/v1/bases/:id/credentials/rotate",
    "PUT /api/v1/bases/:id/credentials/reading-url",
    "DELETE /api/v1/bases/:id/credentials/reading-url",
    "GET /api/v1/bases/:id/sql-users",
    "POST /api/v1/bases/:id/sql-users",
    "PATCH /api/v1/bases/:id/sql-users/:user",
    "GET /api/v1/bases/:id/sql-users/:user/credentials",
    "POST /api/v1/bases/:id/sql-users/:user/rotate",
    "DELETE /api/v1/bases/:id/sql-users/:user",
    "GET /api/v1/agents",
    "POST /api/v1/agents",
    "GET /api/v1/agents/:id",
    "PATCH /api/v1/agents/:id",
    "GET /api/v1/agents/:id/calls",
    "POST /api/v1/agents/:id/token",
    "DELETE /api/v1/agents/:id",
    "GET /api/v1/connections",
    "DELETE /api/v1/connections/:id",
  ]);
  expect(routesWith("credentials")).toEqual(
    expect.arrayContaining([
      "GET /bases/:id/connect",
      "POST /bases/:id/connect/reading-url",
      "POST /bases/:id/connect/reading-url/remove",
      "POST /bases/:id/sql-users",
      "POST /bases/:id/sql-users/:user/rotate",
      "POST /bases/:id/sql-users/:user/revoke",
    ]),
  );
  expect(routesWith("members").sort()).toEqual([
    "DELETE /api/v1/members/:id",
    "PATCH /api/v1/members/:id",
    "POST /account/agents/:id/rules",
    "POST /account/invitations/:id/withdraw",
    "POST /account/members",
    "POST /account/members/:id/role",
    "PUT /api/v1/agents/:id/rules",
  ]);
});

test("a role has all permissions of the lesser ones, and a scope only its own", () => {
  const permissions: Permission[] = ["own", "read", "write", "credentials", "members"];
  for (const permission of permissions) {
    const holders = roles.filter((role) => can(role, permission));
    expect(holders).toEqual(roles.slice(roles.length - holders.length));
    for (const scope of scopes) {
      const expected =
        permission === "own" || scope === permission || (permission === "members" && scope === "write");
      expect([scope, permission, isInScope([scope], permission)]).toEqual([scope, permission, expected]);
    }
  }
});
