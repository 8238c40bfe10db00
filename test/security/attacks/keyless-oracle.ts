/** Learns without a key which bases are connected. */
import { type Attack, Tally } from "../attack";
import type { CallAnswer } from "../service";

const QUESTIONS = [
  { path: "Tasks" },
  { path: "Tasks?offset=basetide.x" },
  { path: "Tasks?offset=basetide.eyJhIjoxfQ" },
  { path: "Tasks/recAAAAAAAAAAAAAA" },
  { path: "Tasks/listRecords", method: "POST", body: { offset: "basetide.x" } },
  { path: "Tasks", headers: { "x-basetide-read": "replica" } },
  { path: "Tasks", method: "POST", body: { fields: {} } },
  { path: "Tasks?records[]=recAAAAAAAAAAAAAA", method: "DELETE" },
];
/** Differ between any two answers. */
const OWN_HEADERS = /^(date|x-request-id|age)$/;

export const keylessOracle: Attack = {
  name: "keyless-oracle",
  finding: "S19",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { victim } = service.accounts;
    const [source, free] = await Promise.all([service.sourceBase("Connected"), service.sourceBase("Not")]);
    const ownerKey = await service.key({ [source.id]: "create" });
    const base = await service.connect(victim, source, {
      api_key: ownerKey,
      settings: { live: false, replica_reads: true },
    });
    await victim.change(base.id, { paused: true });
    for (let round = 0; round < rounds; round++) {
      for (const { path, ...init } of QUESTIONS) {
        const key = random.pick([undefined, "nonsense", `pat${random.int(1, 1e9)}.${random.int(1, 1e9)}`]);
        const asked = { ...init, proxy: random.int(0, 1) };
        const connected = await service.call(`${source.id}/${path}`, key, asked);
        const other = await service.call(`${free.id}/${path}`, key, asked);
        const [one, two] = [seen(connected, source.id), seen(other, free.id)];
        tally.add(one !== two && `${init.method ?? "GET"} ${path}: ${difference(one, two)}`);
      }
    }
    await service.disconnect(base);
    return tally;
  },
};

/** The texts from the first difference on, of the connected base's answer and of another's. */
function difference(one: string, two: string): string {
  const at = Math.max(0, [...one].findIndex((letter, index) => letter !== two[index]) - 20);
  return `${one.slice(at, at + 60)} and ${two.slice(at, at + 60)}`;
}

/** Everything that a client sees of an answer, except the base's own id. */
function seen({ status, headers, text }: CallAnswer, baseId: string): string {
  const own = [...headers].filter(([name]) => !OWN_HEADERS.test(name)).sort();
  return JSON.stringify([status, own, text]).replaceAll(baseId, "app");
}
