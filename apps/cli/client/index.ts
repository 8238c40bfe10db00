/**
 * A client of the management API. The types of its paths are generated from the API's description.
 *
 * It imports nothing of the rest, so that it can be published on its own: Node reads its files with their extensions.
 */
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

export { apiFacts } from "./facts.js";
export type ApiSchemas = components["schemas"];

export interface ClientOptions {
  /** The console's address. */
  url: string;
  token: string;
  /** Names the program in the service's log. */
  userAgent?: string;
  /** Sends a request; for tests and other transports. Default: the platform's. */
  fetch?: (request: Request) => Promise<Response>;
}

/** How often a call that was rejected by the rate limit is sent again, and the longest wait before each. */
const RETRIES = 5;
const MAX_WAIT_MS = 60_000;

/** An answer of the API other than success. `code` is stable; the message says what to do. */
export class ApiFailure extends Error {
  override readonly name = "ApiFailure";

  constructor(
    readonly code: string,
    message: string,
    readonly status: number,
    readonly requestId?: string,
  ) {
    super(message);
  }
}

export type ApiClient = ReturnType<typeof createApiClient>;

export function createApiClient({
  url,
  token,
  userAgent = "basetide-client",
  fetch: send = (request) => fetch(request),
}: ClientOptions) {
  const client = createClient<paths>({
    baseUrl: url.replace(/\/+$/, ""),
    headers: { authorization: `Bearer ${token}`, "user-agent": userAgent },
    fetch: (request) => sendPatiently(request, send),
  });
  client.use({
    async onResponse({ response }) {
      if (!response.ok) throw await failureOf(response);
    },
  });
  return client;
}

/** Returns the body of an answer, which `createApiClient` has checked. @throws ApiFailure */
export async function dataOf<Data>(call: Promise<{ data?: Data }>): Promise<NonNullable<Data>> {
  const { data } = await call;
  if (data === undefined || data === null) throw new ApiFailure("bad_answer", "The answer has no body", 200);
  return data;
}

/** Waits when the service asks for it. It rejects a call before it does anything, so any call can be sent again. */
async function sendPatiently(
  request: Request,
  send: (request: Request) => Promise<Response>,
): Promise<Response> {
  for (let retry = 0; ; retry++) {
    const response = await send(request.clone());
    const waitMs = Number(response.headers.get("retry-after") ?? Number.NaN) * 1000;
    if (response.status !== 429 || retry === RETRIES || !(waitMs <= MAX_WAIT_MS)) return response;
    await response.body?.cancel();
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}

async function failureOf(response: Response): Promise<ApiFailure> {
  const text = await response.text();
  try {
    const { error } = JSON.parse(text) as ApiSchemas["ApiError"];
    return new ApiFailure(error.code, error.message, response.status, error.request_id);
  } catch {
    const message = `${response.url} answered ${response.status} with something else than the API's JSON. Is this the console's address?`;
    return new ApiFailure("bad_answer", message, response.status);
  }
}
