/**
 * The network that benches use: 80 ms ± 20 over TLS, unless `--network` sets another one (`200±60`) or `loopback`,
 * which has neither delay nor encryption.
 */
import type { SettingsPatch } from "../../apps/sandbox/settings";

const DEFAULT = "80±20";

/**
 * The least share of five requests a second that a sync must use if it may use all of them, by round trip ± jitter in
 * ms.
 */
export const LEAST_USED: Record<string, number> = {
  loopback: 0.95,
  "0±0": 0.95,
  "80±20": 0.92,
  "200±60": 0.85,
};

/** The option for `startSandboxProcess`. */
export function networkOption(): { network: string | undefined } {
  const at = process.argv.indexOf("--network");
  const network = at < 0 ? DEFAULT : process.argv[at + 1];
  console.log(network === "loopback" ? "on loopback" : `on a network of ${network} ms over TLS`);
  return { network: network === "loopback" ? undefined : network };
}

/** The source's own time for an answer: together with the network about what users measure, 100-250 ms. */
export const WORK_MS: SettingsPatch = {
  latency: { before: { minMs: 10, maxMs: 60 }, after: { minMs: 10, maxMs: 60 } },
};
