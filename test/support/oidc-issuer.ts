/** An OpenID Connect provider: signs id tokens for whom a test says, and never asks anyone anything. */
import { generateKeyPairSync, randomUUID, sign } from "node:crypto";

interface Person {
  sub: string;
  email: string;
  email_verified?: boolean;
}

const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });

/** @param clientId for which tokens are issued */
export function startIssuer(clientId: string) {
  const tokens = new Map<string, string>();
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request): Promise<Response> {
      const { pathname, origin: url } = new URL(request.url);
      if (pathname === "/.well-known/openid-configuration") {
        return Response.json({
          issuer: url,
          authorization_endpoint: `${url}/authorize`,
          token_endpoint: `${url}/token`,
          jwks_uri: `${url}/keys`,
          id_token_signing_alg_values_supported: ["RS256"],
        });
      }
      if (pathname === "/keys") {
        return Response.json({
          keys: [{ ...publicKey.export({ format: "jwk" }), kid: "1", alg: "RS256", use: "sig" }],
        });
      }
      if (pathname === "/token") {
        const code = new URLSearchParams(await request.text()).get("code") ?? "";
        const idToken = tokens.get(code);
        if (idToken === undefined) return Response.json({ error: "invalid_grant" }, { status: 400 });
        return Response.json({
          access_token: "Planted-Access-Token",
          token_type: "Bearer",
          expires_in: 3600,
          id_token: idToken,
        });
      }
      return new Response(null, { status: 404 });
    },
  });
  const url = `http://127.0.0.1:${server.port}`;
  return {
    url,
    /** The person agrees; returns the path that the browser is sent back to. @param authorize the URL it came with */
    agree(authorize: string, person: Person, other: Record<string, unknown> = {}): string {
      const { searchParams } = new URL(authorize);
      const now = Math.floor(Date.now() / 1000);
      const claims = {
        iss: url,
        aud: clientId,
        iat: now,
        exp: now + 300,
        nonce: searchParams.get("nonce"),
        name: "Ada",
        ...person,
        ...other,
      };
      const code = randomUUID();
      tokens.set(code, jwt(claims));
      const back = new URL(searchParams.get("redirect_uri")!);
      return `${back.pathname}?${new URLSearchParams({ code, state: searchParams.get("state")! })}`;
    },
    [Symbol.dispose]: () => void server.stop(true),
  };
}

function jwt(claims: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const text = `${part({ alg: "RS256", kid: "1", typ: "JWT" })}.${part(claims)}`;
  return `${text}.${sign("sha256", Buffer.from(text), privateKey).toString("base64url")}`;
}
