/**
 * Requests whose answers Airtable takes its time for, for a base that is not connected and whose owner has a valid key: each
 * holds a connection to Airtable, and a proxy has a limited number of them.
 */
import net from "node:net";
import { type Attack, paced, Tally } from "../attack";
import { strangersAddress, type Way } from "../who";

/** More than the connections of a proxy to one address. */
const REQUESTS = 2100;
const PER_SECOND = 700;
const ANSWERED_MS = 8000;
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
    const [owned, strange] = [await service.sourceBase("Owned"), await service.sourceBase("Slow answers")];
    const [ownerKey, key] = [
      await service.key({ [owned.id]: "create" }),
      await service.key({ [strange.id]: "create" }),
    ];
    const base = await service.connect(victim, owned, { api_key: ownerKey, settings: { live: false } });
    const fault = { kind: "hang", base: strange.id, delayMs: ANSWERED_MS };
    const { id: faultId } = (await service.sandbox.call("POST", "faults", fault)) as { id: number };
    for (let round = 0; round < rounds; round++) {
      const way = random.pick<Way>(["one address", "60 networks"]);
      const method = random.pick(["GET", "POST"]);
      const proxy = random.int(0, 1);
      const { port } = service.of("proxy")[proxy]!;
      const address = strangersAddress(way, random);
      const sockets: net.Socket[] = [];
      try {
        await paced(Array.from({ length: REQUESTS }), PER_SECOND, async () => {
          sockets.push(begin(port, method, strange.id, key, address()));
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
    await service.sandbox.call("DELETE", `faults/${faultId}`);
    await service.disconnect(base);
    return tally;
  },
};

function begin(port: number, method: string, baseId: string, key: string, from: string): net.Socket {
  const body = method === "GET" ? "" : BODY;
  const socket = net.connect(port, "127.0.0.1", () =>
    socket.write(
      `${method} /api.airtable.com/v0/${baseId}/Tasks HTTP/1.1\r\nHost: x\r\nX-Client: ${from}\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    ),
  );
  return socket.resume().on("error", () => {});
}
