/**
 * Configures better-auth's OAuth provider: what it issues to the clients of agents, and in which of our tables.
 *
 * Tokens are opaque and looked up, so that they end at once; `@better-auth/mcp` would verify signed ones.
 */
import { cimd } from "@better-auth/cimd";
import { oauthProvider } from "@better-auth/oauth-provider";
import type { BetterAuthPlugin } from "better-auth/types";
import type { Config } from "../../../core/config";
import { agentScopes, hashToken } from "../../../core/control/accounts";
import { ACCESS_TOKEN_PREFIX } from "../../../core/control/agents";
import { newSecret } from "../../../core/secrets";
import { type DocumentNetwork, documentFetch } from "./client-documents";
import { callScope } from "./library-call";
import { CONSENT_PATH, OFFLINE_SCOPE } from "./oauth";
import { CODE_SECONDS, SESSION_SECONDS } from "./resign";

const ACCESS_SECONDS = 15 * 60;

const TABLES: Record<string, string> = {
  oauthAccessToken: "oauth_access_tokens",
  oauthClient: "oauth_clients",
  oauthClientAssertion: "oauth_client_assertions",
  oauthClientResource: "oauth_client_resources",
  oauthConsent: "oauth_consents",
  oauthRefreshToken: "oauth_refresh_tokens",
  oauthResource: "oauth_resources",
};

/** @param resource the address that tokens are for */
export function oauthPlugins(
  config: Pick<Config, "privateDestinations">,
  resource: string,
  network?: DocumentNetwork,
): BetterAuthPlugin[] {
  const provider = oauthProvider({
    loginPage: "/sign-in",
    consentPage: CONSENT_PATH,
    scopes: [...agentScopes, OFFLINE_SCOPE],
    grantTypes: ["authorization_code", "refresh_token"],
    resources: [resource],
    // Clients are strangers until a member connects one, and there is one resource.
    enforcePerClientResources: false,
    accessTokenExpiresIn: ACCESS_SECONDS,
    // As long as the session of a person.
    refreshTokenExpiresIn: SESSION_SECONDS,
    // Of a code, and of a consent page.
    codeExpiresIn: CODE_SECONDS,
    // Opaque tokens, which are looked up: they stop working at once.
    disableJwtPlugin: true,
    storeTokens: { hash: async (token) => hashToken(token) },
    generateOpaqueAccessToken: newSecret,
    generateRefreshToken: newSecret,
    prefix: { opaqueAccessToken: ACCESS_TOKEN_PREFIX, refreshToken: "btr_" },
    postLogin: {
      page: CONSENT_PATH,
      shouldRedirect: () => false,
      consentReferenceId: () => callScope.getStore()?.agentId,
    },
  });
  const documents = cimd({
    metadataProfile: "mcp-2026-07-28",
    fetchClientMetadataResource: documentFetch(config, network),
  });
  return [withOurNames(provider as unknown as BetterAuthPlugin), documents as unknown as BetterAuthPlugin];
}

/** `requirePKCE` → `require_pkce`. */
const columnOf = (name: string) => name.replace(/[A-Z]+/g, (letters) => `_${letters.toLowerCase()}`);

function withOurNames(plugin: BetterAuthPlugin): BetterAuthPlugin {
  for (const [model, table] of Object.entries(plugin.schema ?? {})) {
    table.modelName = TABLES[model]!;
    for (const [name, field] of Object.entries(table.fields)) field.fieldName = columnOf(name);
  }
  return plugin;
}
