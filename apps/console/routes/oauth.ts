/** What the clients of agents call to sign in: descriptions of the service, tokens, and the end of a token. */
import { Elysia } from "elysia";
import { agentScopes } from "../../../core/control/accounts";
import { answerError } from "../../../core/http/service";
import {
  AUTHORIZE_PATH,
  mcpResource,
  OFFLINE_SCOPE,
  oauthError,
  RESOURCE_METADATA_PATH,
  REVOKE_PATH,
  TOKEN_PATH,
} from "../auth/oauth";
import type { ConsoleContext } from "../page-kit";

/** A client whose document has a key can prove that it has the other half. */
const AUTH_METHODS = ["none", "private_key_jwt"];
/** With which the library verifies it. */
const ALGORITHMS = "RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA".split(" ");

export function oauthRoutes({ auth, config, log }: ConsoleContext) {
  const issuer = new URL(config.consoleUrl).origin;
  const at = (path: string) => new URL(path, issuer).toString();
  const described = (facts: Record<string, unknown>) => () =>
    Response.json(facts, { headers: { "cache-control": "public, max-age=60" } });
  const resource = described({
    resource: mcpResource(config.consoleUrl),
    resource_name: "Basetide",
    authorization_servers: [issuer],
    scopes_supported: agentScopes,
    bearer_methods_supported: ["header"],
    resource_documentation: at("/docs/agents"),
  });
  const server = described({
    issuer,
    authorization_endpoint: at(AUTHORIZE_PATH),
    token_endpoint: at(TOKEN_PATH),
    revocation_endpoint: at(REVOKE_PATH),
    scopes_supported: [...agentScopes, OFFLINE_SCOPE],
    response_types_supported: ["code"],
    response_modes_supported: ["query"],
    grant_types_supported: ["authorization_code", "refresh_token"],
    code_challenge_methods_supported: ["S256"],
    token_endpoint_auth_methods_supported: AUTH_METHODS,
    token_endpoint_auth_signing_alg_values_supported: ALGORITHMS,
    revocation_endpoint_auth_methods_supported: AUTH_METHODS,
    revocation_endpoint_auth_signing_alg_values_supported: ALGORITHMS,
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: true,
    service_documentation: at("/docs/agents"),
  });
  /** Errors in the form that clients of the protocol expect. */
  const answered = async (request: Request, answer: (request: Request) => Promise<Response>) => {
    try {
      return await answer(request);
    } catch (error) {
      const { status } = answerError(log, request, error, "UNKNOWN");
      return oauthError(status, "server_error", "The request failed. Try again");
    }
  };
  const options = { parse: "none", detail: { hide: true } } as const;
  return new Elysia({ name: "oauth" })
    .get(RESOURCE_METADATA_PATH, resource, options)
    .get("/.well-known/oauth-protected-resource", resource, options)
    .get("/.well-known/oauth-authorization-server", server, options)
    .post(TOKEN_PATH, ({ request }) => answered(request, auth.oauth.token), options)
    .post(REVOKE_PATH, ({ request }) => answered(request, auth.oauth.revoke), options);
}
