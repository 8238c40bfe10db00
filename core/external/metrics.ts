/** Log lines and metrics about a process's gateway. No label and no line contains a host's name. */
import { Counter, type Registry } from "prom-client";
import type { Logger } from "../log";
import { gateway } from "./gateway";

/** Registers the metrics and starts logging; once per registry. @returns a function that ends this */
export function observeGateway(log: Logger, registry: Registry): () => void {
  const registers = [registry];
  const deaths = new Counter({
    name: "basetide_gateway_restarts_total",
    help: "Restarts of the gateway to external databases, by reason (late, memory, exit)",
    labelNames: ["reason"],
    registers,
  });
  const violations = new Counter({
    name: "basetide_gateway_violations_total",
    help: "Connections to external databases that were closed because the server violated the protocol, by kind",
    labelNames: ["kind"],
    registers,
  });
  return gateway.observe({
    died(reason) {
      deaths.inc({ reason });
      log.error({ reason }, "gateway crashed");
    },
    violated(kind) {
      violations.inc({ kind });
      log.warn({ kind }, "external database violated the protocol");
    },
  });
}
