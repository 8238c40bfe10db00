/** One request to the upstream, with a time-out of its own. */

export interface UpstreamRequest {
  method: string;
  url: string;
  headers: Headers;
  body: Uint8Array<ArrayBuffer> | undefined;
}

export type UpstreamFailure = "timeout" | "unreachable" | "aborted";

/**
 * Sends the request and gives the answer as soon as its headers are there; its body is a stream of the bytes as they
 * came. `signal` (the client's) breaks off the request, and later the body.
 */
export async function askUpstream(
  request: UpstreamRequest,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Response | UpstreamFailure> {
  // One controller for both reasons, cheaper than `AbortSignal.any`; the client's signal also ends the body later.
  const over = new AbortController();
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    over.abort();
  }, timeoutMs);
  signal.addEventListener("abort", () => over.abort());
  if (signal.aborted) over.abort();
  try {
    return await send(request, over.signal);
  } catch {
    return signal.aborted ? "aborted" : isLate ? "timeout" : "unreachable";
  } finally {
    clearTimeout(timer);
  }
}

/** An answer that was read to its end. */
export interface WholeAnswer {
  status: number;
  statusText: string;
  headers: Headers;
  bytes: Uint8Array<ArrayBuffer>;
}

/**
 * Sends the request and reads the whole answer; nobody can call it off.
 *
 * @returns `{failure, status}` when it failed: with a status, if that much had come
 */
export async function askWhole(
  request: UpstreamRequest,
  timeoutMs: number,
): Promise<WholeAnswer | { failure: UpstreamFailure; status: number | undefined }> {
  const signal = AbortSignal.timeout(timeoutMs);
  let status: number | undefined;
  try {
    const response = await send(request, signal);
    status = response.status;
    // What is no answer of HTTP cannot be given on.
    if (status < 200 || status > 599) return { failure: "unreachable", status };
    const bytes = new Uint8Array(await response.arrayBuffer());
    return { status, statusText: response.statusText, headers: response.headers, bytes };
  } catch {
    return { failure: signal.aborted ? "timeout" : "unreachable", status };
  }
}

function send({ method, url, headers, body }: UpstreamRequest, signal: AbortSignal): Promise<Response> {
  return fetch(url, { method, headers, body, signal, redirect: "manual", decompress: false });
}
