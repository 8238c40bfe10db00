/**
 * Traces by OpenTelemetry, sent to `OTEL_EXPORTER_OTLP_ENDPOINT` if it is set. Without it the API's own no-op tracer
 * costs next to nothing, and the SDK is not even loaded.
 */
import {
  type Attributes,
  context,
  defaultTextMapGetter,
  propagation,
  type Span,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import { asBasetideError, type ErrorCode } from "./errors";
import type { Logger } from "./log";
import { requestId } from "./request-id";

/**
 * Longest time to send a batch to a collector, including retries, ms: a stopping process has no more than ten seconds.
 */
const SEND_MS = 4000;
/** Longest time to send the remaining spans when the process stops, ms. */
const LAST_SEND_MS = 2000;
/** Minimum interval between log lines about an unreachable collector, ms. */
const TOLD_EVERY_MS = 60_000;
/** Work of `countedSpan` that takes this long gets a span of its own, ms. */
const SLOW_MS = 1000;

interface Tracing {
  /** Stops sending after a last attempt to send the remaining spans. Never fails. */
  stop(): Promise<void>;
}

/** @param role the process's name, as `basetide-<role>` */
export async function startTracing(
  role: string,
  endpoint: string,
  log: Pick<Logger, "warn">,
): Promise<Tracing> {
  const [sdk, exporter, resources, hooks, core] = await Promise.all([
    import("@opentelemetry/sdk-trace"),
    import("@opentelemetry/exporter-trace-otlp-http"),
    import("@opentelemetry/resources"),
    import("@opentelemetry/context-async-hooks"),
    import("@opentelemetry/core"),
  ]);
  const url = `${endpoint.replace(/\/$/, "")}/v1/traces`;
  const sender = new exporter.OTLPTraceExporter({ url, timeoutMillis: SEND_MS });
  const provider = new sdk.TracerProvider({
    resource: resources.resourceFromAttributes({ "service.name": `basetide-${role}` }),
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter: sender })],
  });
  trace.setGlobalTracerProvider(provider);
  context.setGlobalContextManager(new hooks.AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new core.W3CTraceContextPropagator());
  isTracing = true;
  let reportedAt = Number.NEGATIVE_INFINITY;
  const report = (error: unknown) => {
    if (performance.now() - reportedAt < TOLD_EVERY_MS) return;
    reportedAt = performance.now();
    log.warn({ error }, "sending traces failed");
  };
  core.setGlobalErrorHandler(report);
  return {
    async stop() {
      await Promise.race([provider.shutdown().catch(report), Bun.sleep(LAST_SEND_MS)]);
    },
  };
}

const tracer = trace.getTracer("basetide");
/** Until then, a span per request would cost more than the rest of the bookkeeping, for nothing. */
let isTracing = false;

/** Whether spans are made at all. */
export function isTraced(): boolean {
  return isTracing;
}

/**
 * Runs `work` as a child span of the current span. An error fails the span, by its code.
 *
 * @param attributes facts with few values, or ids; no customers' cells, no secrets
 */
export function span<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T> {
  if (!isTracing) return work();
  return tracer.startActiveSpan(name, { attributes }, async (one) => {
    const id = requestId();
    if (id) one.setAttribute("basetide.request_id", id);
    try {
      return await work();
    } catch (error) {
      one.setStatus({ code: SpanStatusCode.ERROR, message: asBasetideError(error).code });
      throw error;
    } finally {
      endTally(one);
      one.end();
    }
  });
}

/** What `countedSpan` has counted within a span. */
interface Tally {
  name: string;
  count: number;
  totalMs: number;
  longestMs: number;
}

const tallies = new WeakMap<Span, Tally>();

/**
 * Runs `work` of which a span has many, such as the requests of a sweep. The current span gets their number and their
 * durations as attributes (`basetide.<name>.count`, `.total_ms` and `.longest_ms`). Only if one takes a second or fails
 * does it get a span of its own: the SDK takes as long for a span as the rest of a request.
 */
export function countedSpan<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T> {
  if (!isTracing) return work();
  const parent = trace.getActiveSpan();
  if (!parent) return span(name, attributes, work);
  return counted(parent, name, attributes, work);
}

async function counted<T>(
  parent: Span,
  name: string,
  attributes: Attributes,
  work: () => Promise<T>,
): Promise<T> {
  const startedAt = performance.now();
  let error: unknown;
  try {
    return await work();
  } catch (caught) {
    error = caught;
    throw caught;
  } finally {
    const tookMs = performance.now() - startedAt;
    addTo(parent, name, tookMs);
    if (error !== undefined || tookMs >= SLOW_MS) addSpan(name, attributes, tookMs, error);
  }
}

function addTo(parent: Span, name: string, tookMs: number): void {
  const tally = tallies.get(parent);
  if (!tally) {
    tallies.set(parent, { name, count: 1, totalMs: tookMs, longestMs: tookMs });
    return;
  }
  tally.count++;
  tally.totalMs += tookMs;
  tally.longestMs = Math.max(tally.longestMs, tookMs);
}

/** Adds the span of work that has just ended. */
function addSpan(name: string, attributes: Attributes, tookMs: number, error: unknown): void {
  const endedAt = Date.now();
  const one = tracer.startSpan(name, { attributes, startTime: endedAt - tookMs });
  if (error !== undefined)
    one.setStatus({ code: SpanStatusCode.ERROR, message: asBasetideError(error).code });
  one.end(endedAt);
}

function endTally(one: Span): void {
  const tally = tallies.get(one);
  if (!tally) return;
  const { name, count, totalMs, longestMs } = tally;
  one.setAttributes({
    [`basetide.${name}.count`]: count,
    [`basetide.${name}.total_ms`]: Math.round(totalMs),
    [`basetide.${name}.longest_ms`]: Math.round(longestMs),
  });
}

/** Fails the current span, by a code, for a failure that is reported and not thrown. */
export function failSpan(code: ErrorCode): void {
  trace.getActiveSpan()?.setStatus({ code: SpanStatusCode.ERROR, message: code });
}

/** Runs `work` as a child of the span that `headers` name (`traceparent`), if any. */
export function withRemoteParent<T>(headers: Headers, work: () => T): T {
  if (!headers.has("traceparent")) return work();
  const carrier = Object.fromEntries(headers);
  return context.with(propagation.extract(context.active(), carrier, defaultTextMapGetter), work);
}
