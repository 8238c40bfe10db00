/** The admin URL of the cluster that tests share; undefined outside of vitest, where a bench starts its own servers. */
import { inject } from "vitest";

export function clusterUrl(): string | undefined {
  return process.env.VITEST ? inject("clusterUrl") : undefined;
}
