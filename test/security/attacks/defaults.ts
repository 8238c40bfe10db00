/**
 * What a process reveals to clients that can reach its port: metrics to peers that are not on this machine, or that
 * another party's proxy forwards; and secrets in answers that a cache may store.
 */
import { networkInterfaces } from "node:os";
import { type Attack, Tally } from "../attack";
import { rawRequest, sendBytes } from "../raw";

/** Each claims that the request comes from another machine. The last is the header that this service trusts. */
const FORWARDED = [
  "Forwarded",
  "X-Forwarded-For",
  "X-Forwarded-Host",
  "X-Forwarded-Proto",
  "X-Real-IP",
  "Via",
  "CF-Connecting-IP",
  "True-Client-IP",
  "x-client",
];
const CLAIMS = ["127.0.0.1", "for=127.0.0.1", "::1", "203.0.113.9"];
const PATHS = ["/metrics", "/metrics?x=1", "/metrics/", "//metrics", "/%6detrics", "/METRICS"];
/** What a reverse proxy on this machine passes on, if it adds no header. */
const HOSTS = ["console.example.com", "proxy.example.com:443", "localhost.example.com", "10.1.2.3"];
const METRICS = /^# (?:HELP|TYPE) /m;

export const defaults: Attack = {
  name: "defaults",
  finding: "S17, S21, S34",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { mallory } = service.accounts;
    const source = await service.sourceBase("Defaults");
    const key = await service.key({ [source.id]: "create" });
    const base = await service.connect(mallory, source, { api_key: key, settings: { live: false } });
    const elsewhere = ownAddresses();
    for (let round = 0; round < rounds; round++) {
      for (const { name, port } of service.processes) {
        for (const header of FORWARDED) {
          const path = random.pick(PATHS);
          const asked = rawRequest(`GET ${path} HTTP/1.1`, "x", { [header]: random.pick(CLAIMS) });
          const answer = await sendBytes(port, asked);
          tally.add(METRICS.test(answer) && `${name} shows metrics at ${path} with ${header}`);
        }
        for (const host of HOSTS) {
          const path = random.pick(PATHS);
          const answer = await sendBytes(port, rawRequest(`GET ${path} HTTP/1.1`, host, {}));
          tally.add(METRICS.test(answer) && `${name} shows metrics at ${path} to the host ${host}`);
        }
        for (const address of elsewhere) {
          const path = random.pick(PATHS);
          const text = await fetch(`http://${address}:${port}${path}`)
            .then((answer) => answer.text())
            .catch(() => "");
          tally.add(METRICS.test(text) && `${name} shows metrics at ${path} to another address`);
        }
      }
      for (const path of [`bases/${base.id}/credentials`, `bases/${base.id}`, "bases", "audit", "nope"]) {
        const { headers } = await mallory.api("GET", path);
        const missing = [
          headers.get("cache-control") === "no-store" ? "" : "no-store",
          headers.get("x-content-type-options") === "nosniff" ? "" : "nosniff",
        ].filter(Boolean);
        tally.add(missing.length > 0 && `${path} lacks ${missing.join(", ")}`);
      }
    }
    await service.disconnect(base);
    return tally;
  },
};

/** This machine's own addresses, through which a peer is not loopback. */
function ownAddresses(): string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, family }) => !internal && family === "IPv4")
    .map(({ address }) => address)
    .slice(0, 1);
}
