/**
 * Traces by OpenTelemetry, where `OTEL_EXPORTER_OTLP_ENDPOINT` says where they go. Without it the API's own no-op
 * tracer costs next to nothing, and the SDK is not even loaded.
 */
import {
  type Attributes,
  context,
  defaultTextMapGetter,
  propagation,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import { asBasetideError } from "./errors";
import { requestId } from "./request-id";

/** Stops sending, after what is left has been sent. */
export interface Tracing {
  stop(): Promise<void>;
}

/** @param role the process's name, as `basetide-<role>` */
export async function startTracing(role: string, endpoint: string): Promise<Tracing> {
  const [sdk, exporter, resources, hooks, core] = await Promise.all([
    import("@opentelemetry/sdk-trace"),
    import("@opentelemetry/exporter-trace-otlp-http"),
    import("@opentelemetry/resources"),
    import("@opentelemetry/context-async-hooks"),
    import("@opentelemetry/core"),
  ]);
  const url = `${endpoint.replace(/\/$/, "")}/v1/traces`;
  const provider = new sdk.TracerProvider({
    resource: resources.resourceFromAttributes({ "service.name": `basetide-${role}` }),
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter: new exporter.OTLPTraceExporter({ url }) })],
  });
  trace.setGlobalTracerProvider(provider);
  context.setGlobalContextManager(new hooks.AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new core.W3CTraceContextPropagator());
  return { stop: () => provider.shutdown() };
}

const tracer = trace.getTracer("basetide");

/**
 * Runs `work` as a span, below the one that is running. What it throws fails the span, by its code.
 *
 * @param attributes facts of few values, or ids; nothing of a customer's cells, no secret
 */
export function span<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T> {
  return tracer.startActiveSpan(name, { attributes }, async (one) => {
    const id = requestId();
    if (id) one.setAttribute("basetide.request_id", id);
    try {
      return await work();
    } catch (error) {
      one.setStatus({ code: SpanStatusCode.ERROR, message: asBasetideError(error).code });
      throw error;
    } finally {
      one.end();
    }
  });
}

/** Runs `work` below the span that `headers` name (`traceparent`), if they do. */
export function withRemoteParent<T>(headers: Headers, work: () => T): T {
  if (!headers.has("traceparent")) return work();
  const carrier = Object.fromEntries(headers);
  return context.with(propagation.extract(context.active(), carrier, defaultTextMapGetter), work);
}
