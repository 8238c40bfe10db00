/**
 * The proxy's own answers: `{"error":{"type","message"},"sender":"proxy"}`; a 429 also has `errors`, in the source's
 * form.
 */
import type { BaseElsewhere } from "../../core/proxy";
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

const MOVED =
  "This base is no longer served here: it was moved to another installation of Basetide. The request was not forwarded.";

const answers = {
  PROXY_TIMEOUT: { status: 504, message: "Airtable did not respond in time." },
  /** The source's own form: its clients retry such an answer, but not a 504. */
  RATE_LIMITED: {
    type: RATE_LIMIT,
    status: 429,
    message:
      "Airtable asked for a pause, or too many calls are waiting for the rate limit of the base. The request was not forwarded.",
  },
  PROXY_UPSTREAM_UNREACHABLE: {
    status: 502,
    message: "Airtable could not be reached, or closed the connection.",
  },
  PROXY_HOST_NOT_ALLOWED: {
    status: 404,
    message: "The path does not start with the host of an API that this proxy forwards to.",
  },
  PROXY_PATH_NOT_ALLOWED: { status: 400, message: "Only paths below /v0/ of the API's host are forwarded." },
  PATH_AMBIGUOUS: {
    type: "PROXY_PATH_NOT_ALLOWED",
    status: 400,
    message:
      "The path is ambiguous: it contains a dot segment, a backslash (plain or escaped), or a slash, `%`, `;` or control character (escaped) in an id. Use the table's id (tbl…) instead of such a name.",
  },
  PROXY_REQUEST_MALFORMED: {
    status: 400,
    message: "The request's target or Host header is malformed.",
  },
  PROXY_BODY_TOO_LARGE: { status: 413, message: "The request's body is larger than 16 MB." },
  PROXY_BODY_LATE: {
    status: 408,
    message:
      "The request's body arrived too slowly: its first 10 seconds are free, then it must arrive at 64 kB/s. The request was not forwarded.",
  },
  PROXY_BODY_BROKEN: {
    status: 400,
    message: "The connection closed before the request's body was complete.",
  },
  /** The source's own form, because this answer replaces the source's. */
  PROXY_KEY_MISSING: {
    type: "AUTHENTICATION_REQUIRED",
    status: 401,
    message: "Authentication required: send the API key in the Authorization header.",
  },
  PROXY_KEY_REFUSED: {
    type: "AUTHENTICATION_REQUIRED",
    status: 401,
    message: "Airtable rejected this key less than a minute ago. The request was not forwarded.",
  },
  PROXY_TOO_MANY_REQUESTS: {
    status: 429,
    message:
      "Too many requests with this key, or from this address, are waiting for the base. The request was not forwarded.",
  },
  PROXY_BUSY: {
    status: 503,
    message: "The proxy has reached its limit for request bodies in memory. The request was not forwarded.",
  },
  /** The source has the request, and may have answered. */
  ANSWERS_FULL: {
    type: "PROXY_BUSY",
    status: 503,
    message:
      "Too many requests of this key, base, account or network wait for Airtable's answers, or read them slowly. Send fewer at a time, or read faster.",
  },
  WRITES_FULL: {
    type: "PROXY_BUSY",
    status: 503,
    message:
      "Too many requests of this key, base, account or network wait for Airtable's answers. The request was not forwarded.",
  },
  PROXY_BASE_MOVING: {
    status: 503,
    message:
      "The base is being moved to another installation of Basetide. The request was not forwarded. Retry in some seconds.",
  },
  PROXY_BASE_MOVED: { status: 410, message: MOVED },
  PROXY_ERROR: { status: 500, message: "Internal error in the proxy. Its log has the details." },
} satisfies Record<string, Known>;

export type OwnAnswer = keyof typeof answers;

const retryAfter: Partial<Record<OwnAnswer, number>> = {
  PROXY_BUSY: 1000,
  ANSWERS_FULL: 5000,
  WRITES_FULL: 5000,
  PROXY_BASE_MOVING: 5000,
};

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

/**
 * Returns the answer for a base that another control plane has. The key is not checked: no request for the base may be
 * sent from here, not even that of a check.
 */
export function servedElsewhere({ isOver, proxyUrl }: BaseElsewhere): Response {
  if (!isOver) return ownAnswer("PROXY_BASE_MOVING");
  return ownAnswer("PROXY_BASE_MOVED", proxyUrl ? { told: `${MOVED} Use the proxy at ${proxyUrl}.` } : {});
}

const answerOf: Record<UpstreamFailure, OwnAnswer> = {
  timeout: "PROXY_TIMEOUT",
  unreachable: "PROXY_UPSTREAM_UNREACHABLE",
  stale: "PROXY_UPSTREAM_UNREACHABLE",
  crowded: "ANSWERS_FULL",
  // The client has disconnected and does not read it.
  aborted: "PROXY_UPSTREAM_UNREACHABLE",
};

/** Returns the answer to a request that the source did not answer. */
export function failed(metrics: ProxyMetrics, failure: UpstreamFailure): Response {
  metrics.failed(failure);
  return ownAnswer(answerOf[failure]);
}
