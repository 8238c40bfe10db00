/**
 * Requests whose answers Airtable takes its time for, with valid keys of bases that are not connected: each holds a connection
 * to Airtable, and a proxy has a limited number of them.
 */
import net from "node:net";
import { type Attack, paced, Tally } from "../attack";
import type { Service } from "../service";
import { strangersAddress, type Way } from "../who";

/** More than the connections of a proxy to one address. */
const REQUESTS = 2100;
/** Airtable allows each base five calls a second. */
const BASES = 70;
const PER_SECOND = 4 * BASES;
/** The first has no answer when the last is sent. */
const ANSWERED_MS = 12_000;
const ASKED = 4;
/** A single request takes well below 200 ms, ms. */
const SLOW_MS = 2000;
const BODY = JSON.stringify({ fields: { Name: "slow" } });

export const slowAnswers: Attack = {
  name: "slow-answers",
  finding: "S22",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { victim } = service.accounts;
    const owned = await service.sourceBase("Owned");
    const ownerKey = await service.key({ [owned.id]: "create" });
    const strange = await service.setUp(() =>
      Promise.all(Array.from({ length: BASES }, () => slowBase(service))),
    );
    const base = await service.connect(victim, owned, { api_key: ownerKey, settings: { live: false } });
    for (let round = 0; round < rounds; round++) {
      const way = random.pick<Way>(["one address", "60 networks"]);
      const method = random.pick(["GET", "POST"]);
      const proxy = random.int(0, 1);
      const { port } = service.of("proxy")[proxy]!;
      const address = strangersAddress(way, random);
      const sockets: net.Socket[] = [];
      try {
        await paced(Array.from({ length: REQUESTS }), PER_SECOND, async (_, at) => {
          sockets.push(begin(port, method, strange[at % BASES]!, address()));
        });
        for (let at = 0; at < ASKED; at++) {
          const write = at % 2 === 1 && { method: "POST", body: { fields: { Name: "mine" } } };
          const { status, ms } = await service
            .call(`${owned.id}/Tasks`, ownerKey, { ...write, headers: { "x-client": "203.0.113.40" }, proxy })
            .catch(() => ({ status: 0, ms: 0 }));
          tally.add(
            (status !== 200 || ms > SLOW_MS) &&
              `${method}s from ${way}: the owner got ${status} after ${ms.toFixed(0)} ms`,
          );
        }
      } finally {
        for (const socket of sockets) socket.destroy();
      }
      tally.addMany(REQUESTS, 0, "");
    }
    for (const { faultId } of strange) await service.sandbox.call("DELETE", `faults/${faultId}`);
    await service.disconnect(base);
    return tally;
  },
};

interface SlowBase {
  id: string;
  key: string;
  faultId: number;
}

async function slowBase(service: Service): Promise<SlowBase> {
  const { id } = await service.sourceBase("Slow", 0);
  const fault = { kind: "hang", base: id, delayMs: ANSWERED_MS };
  const { id: faultId } = (await service.sandbox.call("POST", "faults", fault)) as { id: number };
  return { id, key: await service.key({ [id]: "create" }), faultId };
}

function begin(port: number, method: string, { id, key }: SlowBase, from: string): net.Socket {
  const body = method === "GET" ? "" : BODY;
  const socket = net.connect(port, "127.0.0.1", () =>
    socket.write(
      `${method} /api.airtable.com/v0/${id}/Tasks HTTP/1.1\r\nHost: x\r\nX-Client: ${from}\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    ),
  );
  return socket.resume().on("error", () => {});
}
