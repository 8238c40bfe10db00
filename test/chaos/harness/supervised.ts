/** A supervised program with its own fault proxies to the control plane and to the source. */
import type { FaultProxy } from "../../support/fault-proxy";
import * as support from "../../support/supervised";
import type { SourceWay } from "./source-lines";

export type { Role } from "../../support/supervised";

interface Ways {
  control: FaultProxy;
  source: SourceWay;
}

export type Supervised = support.Supervised & Ways;

export function supervise(
  name: string,
  role: support.Role,
  port: number,
  ways: Ways,
  env: Record<string, string>,
  logFile: string | undefined,
): Supervised {
  return Object.assign(support.supervise(name, role, port, env, logFile), ways);
}
