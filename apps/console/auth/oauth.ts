/**
 * The authorization server with which the clients of agents sign in (OAuth 2.1), by better-auth: the calls that our routes
 * may make, and their results.
 *
 * O1. Nothing happens without a member's consent on our page: a client cannot ask for an answer without it.
 * O2. A token is for `/mcp` of this console, and acts as the agent that the member chose.
 * O3. Strangers cause no request to an address of their choice: a client's document is read for a signed-in member, and
 *     otherwise only if it was read before.
 */
import type { Context } from "../../../core/context";
import { BasetideError } from "../../../core/errors";
import { clientAddress } from "../../../core/http";
import { MCP_PATH } from "../mcp/path";
import type { DocumentNetwork } from "./client-documents";
import type { createLibrary } from "./library";
import { ADDRESS_HEADER, callScope } from "./library-call";

/** Where people consent, and where the library would send them to. */
export const AUTHORIZE_PATH = "/oauth2/authorize";
export const TOKEN_PATH = "/oauth2/token";
export const REVOKE_PATH = "/oauth2/revoke";
export const CONSENT_PATH = `${AUTHORIZE_PATH}/consent`;
const ERROR_PATH = `${AUTHORIZE_PATH}/error`;
/** What describes `/mcp` to clients (RFC 9728). */
export const RESOURCE_METADATA_PATH = `/.well-known/oauth-protected-resource${MCP_PATH}`;
/** With it, a client gets a token that renews others. */
export const OFFLINE_SCOPE = "offline_access";
/** Requests to the endpoints of programs are shorter, bytes. */
const MOST_BYTES = 32 * 1024;

/** What follows from the request with which a client sends a person here. */
export type Begun =
  | {
      kind: "ask";
      /** The request, signed: valid for ten minutes. */
      query: string;
      client: OAuthClient;
      scopes: string[];
      redirectUri: string;
    }
  /** The client is told what is wrong. */
  | { kind: "redirect"; url: string }
  /** The client cannot be told, because its address may be somebody else's. */
  | { kind: "refused"; code: string; reason: string };

export interface OAuthClient {
  /** As it calls itself. */
  name: string;
  /** The address of its document. */
  clientId: string;
}

type Library = ReturnType<typeof createLibrary>;
type OAuthContext = Pick<Context, "config" | "db">;

/**
 * @param create the library with the OAuth provider
 * @param prepare adapts the headers of each call
 */
export function createOAuth(
  { config, db }: OAuthContext,
  create: () => Promise<Library>,
  prepare: (headers: Headers) => unknown,
) {
  const resource = mcpResource(config.consoleUrl);
  let library: Promise<Library> | undefined;
  const call = async (request: Request, path: string, init: RequestInit = {}, agentId?: string) => {
    library ??= create();
    const headers = new Headers(init.headers);
    const address = clientAddress(request, config.clientIpHeader);
    if (address) headers.set(ADDRESS_HEADER, address);
    const inner = new Request(`${config.consoleUrl}${path}`, { ...init, headers, redirect: "manual" });
    try {
      const { handler } = await library;
      return await callScope.run(agentId === undefined ? {} : { agentId }, () => handler(inner));
    } catch (error) {
      library = undefined;
      throw error;
    }
  };
  const asUser = (request: Request, more: Record<string, string>): Headers => {
    const headers = new Headers({ cookie: request.headers.get("cookie") ?? "", ...more });
    prepare(headers);
    return headers;
  };
  const isKnown = async (clientId: string) => {
    const [found] = await db`select from oauth_clients where client_id = ${clientId}`;
    return found !== undefined;
  };
  /** @param corrected the library's answer as it should be */
  const program = async (
    request: Request,
    path: string,
    corrected: (response: Response, error: string) => Response,
  ): Promise<Response> => {
    const body = new Uint8Array(await request.arrayBuffer());
    if (body.length > MOST_BYTES) return oauthError(413, "invalid_request", "The request is too long");
    const type = request.headers.get("content-type") ?? "";
    if (!/^application\/x-www-form-urlencoded\b/i.test(type))
      return oauthError(415, "invalid_request", "The request must be application/x-www-form-urlencoded");
    const form = new URLSearchParams(new TextDecoder().decode(body));
    if (!isReadable(form)) return oauthError(400, "invalid_request", "The request has control characters");
    const repeated = [...form.keys()].find((name) => name !== "resource" && form.getAll(name).length > 1);
    if (repeated !== undefined) return oauthError(400, "invalid_request", `${repeated} is repeated`);
    const clientId = form.get("client_id") || subjectOf(form.get("client_assertion") ?? "");
    if (!(await isKnown(clientId)))
      return oauthError(401, "invalid_client", "No client with this client_id has signed in here");
    form.set("client_id", clientId);
    if (path === REVOKE_PATH) {
      if (!form.get("token")) return oauthError(400, "invalid_request", "The token is missing");
      // With it, the library looks for tokens of one kind only.
      form.delete("token_type_hint");
    }
    const response = await call(request, path, {
      method: "POST",
      body: form.toString(),
      headers: { "content-type": "application/x-www-form-urlencoded" },
    });
    response.headers.set("cache-control", "no-store");
    if (response.ok) return response;
    const told = (await response
      .clone()
      .json()
      .catch(() => null)) as { error?: unknown } | null;
    return corrected(response, String(told?.error));
  };
  return {
    async begin(request: Request): Promise<Begun> {
      const asked = new URL(request.url).searchParams;
      if (!isReadable(asked))
        return { kind: "refused", code: "invalid_request", reason: "it has control characters" };
      asked.set("prompt", "consent");
      asked.delete("max_age");
      if (!asked.has("resource")) asked.set("resource", resource);
      const scopes = (asked.get("scope") ?? "").split(" ").filter((scope) => scope !== "");
      asked.set("scope", [...new Set(["agent:read", ...scopes, OFFLINE_SCOPE])].join(" "));
      const response = await call(request, `${AUTHORIZE_PATH}?${asked}`, {
        headers: asUser(request, { accept: "text/html" }),
      });
      const location = response.headers.get("location");
      if (location === null) {
        const body = (await response.json().catch(() => ({}))) as Record<string, unknown>;
        return {
          kind: "refused",
          code: String(body.error ?? "server_error"),
          reason: String(body.error_description ?? "The request could not be understood"),
        };
      }
      const url = new URL(location, config.consoleUrl);
      const isOurs = url.origin === new URL(config.consoleUrl).origin;
      if (isOurs && url.pathname === ERROR_PATH) {
        const code = url.searchParams.get("error") ?? "server_error";
        return { kind: "refused", code, reason: url.searchParams.get("error_description") ?? "" };
      }
      if (!isOurs || url.pathname !== CONSENT_PATH) return { kind: "redirect", url: location };
      const clientId = url.searchParams.get("client_id") ?? "";
      const [client] = await db<{ name: string | null }[]>`
        select name from oauth_clients where client_id = ${clientId}`;
      return {
        kind: "ask",
        query: url.search.slice(1),
        client: { name: client?.name || new URL(clientId).host, clientId },
        scopes: (url.searchParams.get("scope") ?? "").split(" "),
        redirectUri: url.searchParams.get("redirect_uri") ?? "",
      };
    },
    /**
     * Answers a client's request as the person has decided.
     *
     * @param decision.query as `begin` returned it
     * @param decision.scopes null: refused
     * @returns where to send the browser
     * @throws BasetideError `invalid_request` if the request has expired, or is not one that `begin` has signed
     */
    async decide(
      request: Request,
      { query, agentId, scopes }: { query: string; agentId: string; scopes: readonly string[] | null },
    ) {
      const body = {
        accept: scopes !== null,
        oauth_query: query,
        ...(scopes && { scope: [...scopes, OFFLINE_SCOPE].join(" ") }),
      };
      const headers = asUser(request, { accept: "application/json", "content-type": "application/json" });
      const init = { method: "POST", headers, body: JSON.stringify(body) };
      const response = await call(request, "/oauth2/consent", init, agentId);
      const { url } = (await response.json().catch(() => ({}))) as { url?: string };
      if (response.ok && url !== undefined) return url;
      throw new BasetideError(
        "invalid_request",
        "This request has expired or was changed. Begin again in the program that you want to connect",
      );
    },
    /** The endpoints of programs. */
    token: (request: Request) =>
      program(request, TOKEN_PATH, (response, error) =>
        response.status === 401 && error === "invalid_request"
          ? // RFC 7636, section 4.6; the library says so of a wrong verifier.
            oauthError(400, "invalid_grant", "The code_verifier is not that of the code_challenge")
          : response,
      ),
    revoke: (request: Request) =>
      program(request, REVOKE_PATH, (response, error) =>
        response.status === 400 && error === "invalid_request"
          ? // A token that is not known has ended (RFC 7009, section 2.2); the library has an error for it.
            new Response(null, { headers: { "cache-control": "no-store" } })
          : response,
      ),
  };
}

/** Returns the client of an assertion, which the library verifies: a request with one may leave out its `client_id` (RFC 7521). */
function subjectOf(assertion: string): string {
  try {
    const [, claims = ""] = assertion.split(".");
    const { sub, iss } = JSON.parse(Buffer.from(claims, "base64url").toString());
    const subject = String(sub ?? iss ?? "");
    return isReadable([subject]) ? subject : "";
  } catch {
    return "";
  }
}

/** Postgres refuses some control characters, and what is sent is looked up. */
function isReadable(sent: Iterable<string | string[]>): boolean {
  return !/\p{Cc}/u.test([...sent].flat().join(""));
}

/** Returns the library with the OAuth provider; it has 600 kB, and is loaded when the first client signs in. */
export async function loadOAuth(
  { config }: OAuthContext,
  load: (options: Parameters<typeof createLibrary>[2]) => Promise<Library>,
  network?: DocumentNetwork,
): Promise<Library> {
  const { oauthPlugins } = await import("./oauth-plugins");
  const plugins = oauthPlugins(config, mcpResource(config.consoleUrl), network);
  return load({ plugins, basePath: "/", errorUrl: `${config.consoleUrl}${ERROR_PATH}` });
}

/** The address that tokens are for. */
export function mcpResource(consoleUrl: string): string {
  return new URL(MCP_PATH, consoleUrl).toString();
}

/** An error as RFC 6749 has it. */
export function oauthError(status: number, error: string, description: string): Response {
  return Response.json(
    { error, error_description: description },
    { status, headers: { "cache-control": "no-store" } },
  );
}
