/** API route that checks a customer's own database before a base is connected to it. */

import { Elysia } from "elysia";
import { isProblem } from "../../../core/check-result";
import type { ManagementContext } from "../../../core/control/bases";
import { inspectDestination } from "../../../core/control/placement";
import { bearerAuth } from "../bearer-auth";
import * as schemas from "../schemas";
import { raises } from "../schemas/parts";

export function destinationRoutes(ctx: ManagementContext) {
  return new Elysia({ prefix: "/api/v1", tags: ["Sources"] }).use(bearerAuth(ctx.db)).post(
    "/destinations/check",
    async ({ account, body }) => {
      const checks = await inspectDestination(ctx, account.id, { kind: "external", ...body });
      return {
        is_usable: checks.every((one) => !isProblem(one)),
        checks: checks.map(({ check, severity: status, message, remedy = null }) => ({
          check,
          status,
          message,
          remedy,
        })),
      };
    },
    {
      body: schemas.destinationCheck,
      response: { 200: schemas.destinationChecks },
      detail: {
        summary: "Check a database that you host",
        description:
          "Connects in the same way as the service, and changes nothing. Checks the address, server and version, pooler, encryption, distance, rights and schema, and returns a remedy for each problem. Stops at the first problem.",
        ...raises("already_exists"),
      },
    },
  );
}
