/** Clients of agents as they are on the internet: a site with the documents that describe them, and what they send. */
import { createHash, generateKeyPairSync, randomBytes, randomUUID, sign } from "node:crypto";
import type { DocumentNetwork } from "../../apps/console/auth/client-documents";
import { createAuthority } from "./certificates";

const HOST = "client.example.com";
export const REDIRECT = "http://127.0.0.1:7999/callback";

type Document = Record<string, unknown> | (() => Response | Promise<Response>);

export interface ClientSite {
  /** For `createAuth`: the site is at this machine, and its certificate is trusted. */
  network: DocumentNetwork;
  /** Serves a document; returns the id of the client that it describes. */
  publish(path: string, document?: Document): string;
  /** The address of a document of another host at this site. */
  at(host: string, path: string): string;
  /** The paths that were read, in order. */
  read: string[];
  [Symbol.asyncDispose](): Promise<void>;
}

/** @param addresses of hosts other than the site's own */
export function startClientSite(addresses: Record<string, string[]> = {}): ClientSite {
  const authority = createAuthority("clients");
  const { certificate, key } = authority.issue([HOST, "other.example.com"]);
  const documents = new Map<string, Document>();
  const read: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    tls: { cert: certificate, key },
    async fetch(request) {
      const { pathname } = new URL(request.url);
      read.push(pathname);
      const found = documents.get(pathname);
      if (found === undefined) return new Response(null, { status: 404 });
      return typeof found === "function" ? found() : Response.json(found);
    },
  });
  const at = (host: string, path: string) => `https://${host}:${server.port}${path}`;
  return {
    network: {
      ca: authority.certificate,
      resolve: async (host) => addresses[host] ?? ["127.0.0.1"],
      timeoutMs: 500,
    },
    at,
    read,
    publish(path, document = {}) {
      const id = at(HOST, path);
      const described = {
        client_id: id,
        client_name: "Test Client",
        redirect_uris: [REDIRECT],
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
        token_endpoint_auth_method: "none",
      };
      documents.set(path, typeof document === "function" ? document : { ...described, ...document });
      return id;
    },
    async [Symbol.asyncDispose]() {
      await server.stop(true);
    },
  };
}

/** A client's key: what its document says of it, and what proves that it has the other half (RFC 7523). */
export function clientKey() {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");
  return {
    document: {
      token_endpoint_auth_method: "private_key_jwt",
      jwks: { keys: [{ ...publicKey.export({ format: "jwk" }), kid: "1", alg: "ES256", use: "sig" }] },
    },
    /** @param audience the token endpoint */
    assertion(clientId: string, audience: string): Record<string, string> {
      const now = Math.floor(Date.now() / 1000);
      const claims = {
        iss: clientId,
        sub: clientId,
        aud: audience,
        iat: now,
        exp: now + 60,
        jti: randomUUID(),
      };
      const text = `${encoded({ alg: "ES256", kid: "1" })}.${encoded(claims)}`;
      const signed = sign("sha256", Buffer.from(text), { key: privateKey, dsaEncoding: "ieee-p1363" });
      return {
        client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        client_assertion: `${text}.${signed.toString("base64url")}`,
      };
    },
  };
}

/** A verifier, and what of it is shown beforehand (RFC 7636). */
export function pkce() {
  const verifier = randomBytes(32).toString("base64url");
  return { verifier, challenge: createHash("sha256").update(verifier).digest("base64url") };
}
