/**
 * The proxy's own answers: `{"error":{"type","message"},"sender":"proxy"}`; a 429 also has `errors`, in the source's
 * form.
 */
import { requestId } from "../../core/request-id";
import { setExposed } from "./cors";
import type { ProxyMetrics } from "./metrics";
import type { UpstreamFailure } from "./upstream";

interface Known {
  /** The answer's name unless given. */
  type?: string;
  status: number;
  message: string;
}

/** The source's own type for a rate limit. */
const RATE_LIMIT = "RATE_LIMIT_REACHED";

const answers = {
  PROXY_TIMEOUT: { status: 504, message: "The source did not answer in time." },
  /** The source's own form: its clients retry such an answer, but not a 504. */
  RATE_LIMITED: {
    type: RATE_LIMIT,
    status: 429,
    message:
      "The source has asked for a pause, or more calls wait for the base than its quota serves in time; the source was not asked.",
  },
  PROXY_UPSTREAM_UNREACHABLE: { status: 502, message: "The source could not be reached, or broke off." },
  PROXY_HOST_NOT_ALLOWED: {
    status: 404,
    message:
      "The path does not begin with the host of an API that this proxy forwards to. (A path without a host needs a Host header that is the proxy's own, as PROXY_URL has it, or an API's.)",
  },
  PROXY_PATH_NOT_ALLOWED: { status: 400, message: "Only paths below /v0/ of the API's host are forwarded." },
  PATH_AMBIGUOUS: {
    type: "PROXY_PATH_NOT_ALLOWED",
    status: 400,
    message:
      "The path can be read in more than one way: it has a dot segment or a backslash, maybe escaped, or an escaped slash in an id. Use the table's id (tbl…) in place of such a name.",
  },
  PROXY_REQUEST_MALFORMED: {
    status: 400,
    message: "The request's target or Host is not in its normal form.",
  },
  BODY_NOT_TAKEN: {
    type: "PROXY_REQUEST_MALFORMED",
    status: 400,
    message:
      "The body of a GET or HEAD request cannot be forwarded; the source was not asked. Send the request without a body, or list records by POST …/listRecords.",
  },
  PROXY_BODY_TOO_LARGE: { status: 413, message: "The request's body is larger than 16 MB." },
  PROXY_BODY_BROKEN: { status: 400, message: "The request's body broke off." },
  /** The source's own form, because this answer replaces the source's. */
  PROXY_KEY_MISSING: {
    type: "AUTHENTICATION_REQUIRED",
    status: 401,
    message: "Authentication required: send the API key in the Authorization header.",
  },
  PROXY_KEY_REFUSED: {
    type: "AUTHENTICATION_REQUIRED",
    status: 401,
    message: "The source refused this key less than a minute ago; it was not asked again.",
  },
  PROXY_TOO_MANY_REQUESTS: {
    status: 429,
    message:
      "Too many requests with this key, or from this address, wait for the base; the source was not asked.",
  },
  PROXY_BUSY: {
    status: 503,
    message: "The proxy holds as many request bodies as it may; the source was not asked.",
  },
  PROXY_ERROR: { status: 500, message: "A fault in the proxy itself; its log has the details." },
} satisfies Record<string, Known>;

export type OwnAnswer = keyof typeof answers;

const retryAfter: Partial<Record<OwnAnswer, number>> = { PROXY_BUSY: 1000 };

/**
 * @param options.told replaces the default message of this answer
 * @param options.retryAfterMs when a retry makes sense
 */
export function ownAnswer(
  name: OwnAnswer,
  { told, retryAfterMs = retryAfter[name] }: { told?: string; retryAfterMs?: number | undefined } = {},
): Response {
  const { type = name, status, message }: Known = answers[name];
  // Browsers can read an answer of another origin only with this header, which the source sends too.
  const headers = new Headers({ "access-control-allow-origin": "*" });
  // Identifies the request in the log, if it got that far.
  const id = requestId();
  if (id) setExposed(headers, "x-request-id", id);
  if (retryAfterMs !== undefined)
    setExposed(headers, "retry-after", String(Math.max(1, Math.ceil(retryAfterMs / 1000))));
  const text = told ?? message;
  const error = { type, message: text };
  // The source has two forms for this, the documented one and the one that it sends; clients know either.
  const errors = status === 429 ? { errors: [{ error: RATE_LIMIT, message: text }] } : {};
  return Response.json({ error, ...errors, sender: "proxy" }, { status, headers });
}

const answerOf: Record<UpstreamFailure, OwnAnswer> = {
  timeout: "PROXY_TIMEOUT",
  unreachable: "PROXY_UPSTREAM_UNREACHABLE",
  stale: "PROXY_UPSTREAM_UNREACHABLE",
  // The client has disconnected and does not read it.
  aborted: "PROXY_UPSTREAM_UNREACHABLE",
};

/** Returns the answer to a request that the source did not answer. */
export function failed(metrics: ProxyMetrics, failure: UpstreamFailure): Response {
  metrics.failed(failure);
  return ownAnswer(answerOf[failure]);
}
