/**
 * The network that benches run on: 80 ms ± 20 over TLS, unless `--network` gives another one (`200±60`) or `loopback`,
 * which is neither delayed nor encrypted.
 */
import type { SettingsPatch } from "../../apps/sandbox/settings";

const DEFAULT = "80±20";

/** Least share of five a second that a sync which may use all of it does use, by round trip ± jitter in ms. */
export const LEAST_USED: Record<string, number> = {
  loopback: 0.95,
  "0±0": 0.95,
  "80±20": 0.92,
  "200±60": 0.85,
};

/** What `startSandboxProcess` takes. */
export function networkOption(): { network: string | undefined } {
  const at = process.argv.indexOf("--network");
  const network = at < 0 ? DEFAULT : process.argv[at + 1];
  console.log(network === "loopback" ? "on loopback" : `on a network of ${network} ms over TLS`);
  return { network: network === "loopback" ? undefined : network };
}

/** What the source itself takes for an answer: with the way there and back about what people measure, 100-250 ms. */
export const WORK_MS: SettingsPatch = {
  latency: { before: { minMs: 10, maxMs: 60 }, after: { minMs: 10, maxMs: 60 } },
};
