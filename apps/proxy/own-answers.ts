/** The answers that are the proxy's own: `{"error":{"type","message"},"sender":"proxy"}`. */
import { requestId } from "../../core/request-id";
import type { ProxyMetrics } from "./metrics";
import type { UpstreamFailure } from "./upstream";

interface Known {
  /** The name itself, unless given. */
  type?: string;
  status: number;
  message: string;
}

const answers = {
  PROXY_TIMEOUT: { status: 504, message: "The source did not answer in time." },
  /** A time-out to its reader, whatever it was that took the time. */
  QUOTA_TIMEOUT: {
    type: "PROXY_TIMEOUT",
    status: 504,
    message: "No request of the base's quota came free in time; the source was not asked.",
  },
  PROXY_UPSTREAM_UNREACHABLE: { status: 502, message: "The source could not be reached, or broke off." },
  PROXY_HOST_NOT_ALLOWED: {
    status: 404,
    message: "The path does not begin with the host of an API that this proxy forwards to.",
  },
  PROXY_PATH_NOT_ALLOWED: { status: 400, message: "Only paths below /v0/ of the API's host are forwarded." },
  PROXY_BODY_TOO_LARGE: { status: 413, message: "The request's body is larger than 16 MB." },
  PROXY_BODY_BROKEN: { status: 400, message: "The request's body broke off." },
  PROXY_ERROR: { status: 500, message: "A fault in the proxy itself; its log has the details." },
} satisfies Record<string, Known>;

export type OwnAnswer = keyof typeof answers;

export function ownAnswer(name: OwnAnswer): Response {
  const { type = name, status, message }: Known = answers[name];
  // Browsers read an answer of another origin only with this header, which the source sends too.
  const headers = new Headers({ "access-control-allow-origin": "*" });
  // By which the log knows the request, where it has got that far.
  const id = requestId();
  if (id) headers.set("x-request-id", id);
  return Response.json({ error: { type, message }, sender: "proxy" }, { status, headers });
}

const answerOf: Record<UpstreamFailure, OwnAnswer> = {
  timeout: "PROXY_TIMEOUT",
  unreachable: "PROXY_UPSTREAM_UNREACHABLE",
  stale: "PROXY_UPSTREAM_UNREACHABLE",
  // Nobody is there to read it.
  aborted: "PROXY_UPSTREAM_UNREACHABLE",
};

/** The answer to a request that the source did not answer. */
export function failed(metrics: ProxyMetrics, failure: UpstreamFailure): Response {
  metrics.failed(failure);
  return ownAnswer(answerOf[failure]);
}
