/**
 * The OpenAPI document of the management API, made from its routes.
 *
 * O1. Every operation has its body, its parameters, its answers and its errors, each with an example that its schema
 *     accepts; a schema with a name is a shared component.
 */
import { version } from "../../../package.json" with { type: "json" };
import type { ApiDocument, ApiOperation } from "../../../views/docs/openapi";
import { apiErrorSchema } from "./errors";
import type { Components } from "./json-schema";
import { type ApiRoute, describeOperation } from "./operation";

const INFO = [
  "Connect Airtable bases, change their settings, and read their state and credentials.",
  "Send an API token of the account in the Authorization header, and bodies as JSON. A token has scopes (`read`, `write`, `credentials`); each call names the one that it needs.",
  'Every error is `{"error":{"code","message","request_id"}}`.',
].join(" ");

/** The paths that are described. */
const API = "/api/";

/** Describes the app's routes, which are complete only after the route that serves the description. */
export class ApiDescription {
  #routes: ApiRoute[] = [];
  #document: ApiDocument | undefined;

  constructor(private readonly consoleUrl: string) {}

  describe(routes: ApiRoute[]): void {
    this.#routes = routes.filter(({ path }) => path.startsWith(API));
    this.#document = undefined;
  }

  get document(): ApiDocument {
    this.#document ??= makeDocument(this.#routes, this.consoleUrl);
    return this.#document;
  }

  /** The methods that a path has, in upper case; empty if there is no such path. */
  methodsOf(path: string): string[] {
    const matching = this.#routes.filter((route) => matches(route.path, path));
    return [...new Set(matching.map(({ method }) => method))].sort();
  }
}

function makeDocument(routes: ApiRoute[], consoleUrl: string): ApiDocument {
  const components: Components = new Map([["ApiError", apiErrorSchema]]);
  const paths: Record<string, Record<string, ApiOperation>> = {};
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, "{$1}").replace(/\/$/, "");
    paths[path] = {
      ...paths[path],
      [route.method.toLowerCase()]: describeOperation(route, path, components),
    };
  }
  const tags = Object.values(paths).flatMap((operations) =>
    Object.values(operations).flatMap((operation) => operation.tags),
  );
  return {
    openapi: "3.1.0",
    info: { title: "Basetide management API", version, description: INFO },
    servers: [{ url: consoleUrl }],
    security: [{ token: [] }],
    tags: [...new Set(tags)].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: {
        token: { type: "http", scheme: "bearer", description: "An API token of the account" },
      },
      schemas: Object.fromEntries([...components].sort(([a], [b]) => a.localeCompare(b, "en"))),
    },
  };
}

function matches(pattern: string, path: string): boolean {
  const [wanted, given] = [pattern.split("/"), path.replace(/\/$/, "").split("/")];
  return (
    wanted.length === given.length &&
    wanted.every((part, index) => (part.startsWith(":") ? given[index] !== "" : part === given[index]))
  );
}
