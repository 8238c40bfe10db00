/** Metrics of a process in Prometheus format, and their separate listener if METRICS_PORT is set. */
import { Registry } from "prom-client";
import type { Config } from "../../config";
import type { Logger } from "../../log";
import { type Listener, listen, pathOf } from "..";

/** @param registries of the roles in this process: one, except in `bun run up` and the role `all` */
export async function answerMetrics(registries: Registry[]): Promise<Response> {
  const texts = await Promise.all(registries.map((registry) => registry.metrics()));
  return new Response(joined(texts), { headers: { "content-type": Registry.PROMETHEUS_CONTENT_TYPE } });
}

export function noMetrics(): Response {
  const message = "Metrics are not available on this port. See METRICS_PORT";
  return Response.json({ error: { code: "not_found", message } }, { status: 404 });
}

/**
 * Serves `/metrics` on METRICS_PORT.
 *
 * @returns undefined if that is not set
 * @throws BasetideError `port_taken`
 */
export function listenForMetrics(
  config: Pick<Config, "metricsPort" | "metricsHost" | "host">,
  registries: Registry[],
  log: Logger,
): Listener | undefined {
  if (config.metricsPort === undefined) return undefined;
  const listener = listen(
    { fetch: (request) => (pathOf(request) === "/metrics" ? answerMetrics(registries) : noMetrics()) },
    {
      port: config.metricsPort,
      portVariable: "METRICS_PORT",
      host: config.metricsHost ?? config.host,
      log,
    },
  );
  log.info({ port: listener.port }, "metrics listening");
  return listener;
}

/** A metric of several registries must be described only once; its samples differ in the label `role`. */
function joined(texts: string[]): string {
  if (texts.length === 1) return texts[0]!;
  const samples = new Map<string, string[]>();
  for (const block of texts.flatMap((text) => text.trim().split("\n\n"))) {
    const lines = block.split("\n");
    const described = lines.filter((line) => line.startsWith("# ")).join("\n");
    const known = samples.get(described) ?? [];
    samples.set(described, [...known, ...lines.filter((line) => line !== "" && !line.startsWith("# "))]);
  }
  return [...samples].map(([described, lines]) => `${[described, ...lines].join("\n")}\n`).join("\n");
}
