/** The description of the management API, as OpenAPI at `/openapi`. */
import { Elysia } from "elysia";
import type { ApiDescription } from "./description";

export type { ApiDocument, ApiOperation, JsonSchema } from "../../../views/docs/openapi";
export { ApiDescription } from "./description";
export type { ApiRoute } from "./operation";

export function openApiRoute(description: ApiDescription) {
  return new Elysia({ name: "openapi" }).get("/openapi", () => Response.json(description.document), {
    detail: { hide: true },
  });
}
