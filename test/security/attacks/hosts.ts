/** A `Host` that cannot be parsed causes an internal error, or no answer at all. */
import type { Random } from "../../../apps/sandbox/random";
import { type Attack, paced, Tally } from "../attack";
import { rawRequest, sendBytes, statusOf } from "../raw";
import type { Service } from "../service";
import { anyHost } from "./hostile-hosts";

const PER_ROUND = 30;
const PER_SECOND = 40;
const PATHS = {
  console: ["/sign-in", "/", "/api/v1/bases", "/openapi", "/attachments/x", "/healthz", "/../sign-in", "//x"],
  proxy: ["/", "/api.airtable.com/v0/appX/Tasks", "/healthz", "/x", "//"],
  worker: ["/healthz", "/readyz", "/", "/metrics"],
};

export const hosts: Attack = {
  name: "hosts",
  finding: "S18",
  async run(service, rounds, random) {
    const tally = new Tally();
    await paced(Array(rounds * PER_ROUND), PER_SECOND, async () => tally.add(await ask(service, random)));
    return tally;
  },
};

async function ask(service: Service, random: Random): Promise<string | false> {
  const one = random.pick(service.processes);
  const host = anyHost(random);
  const path = random.pick(PATHS[one.role]);
  const method = random.pick(["GET", "GET", "POST", "HEAD", "OPTIONS", "PATCH"]);
  const version = random.chance(0.8) ? "1.1" : "1.0";
  const answer = await sendBytes(one.port, rawRequest(`${method} ${path} HTTP/${version}`, host, {}));
  const status = statusOf(answer);
  const asked = `${method} ${path} with Host ${JSON.stringify(host)} at the ${one.role}`;
  // Bun closes connections that do not speak HTTP: that counts as an answer.
  return status !== undefined && status >= 500 && status !== 503 && `${status} to ${asked}`;
}
