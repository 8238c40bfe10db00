/** Connections to `CONNECT_PORT` that stay open, half of them without a request: takes the tunnels that a proxy allows. */
import { readFileSync } from "node:fs";
import net from "node:net";
import tls from "node:tls";
import { type Attack, Tally } from "../attack";
import { NETWORKS, WAYS, type Way } from "../who";

/** More than one address may have, and more than there are in all. */
const OF_ONE = 600;
const OF_ALL = 1080;
const CONNECT = "CONNECT api.airtable.com:443 HTTP/1.1\r\nHost: api.airtable.com:443\r\n\r\n";
const OPENED_MS = 1500;
const ANSWER_MS = 8000;
const ASKED = 3;

export const tunnels: Attack = {
  name: "tunnels",
  finding: "S36",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { victim, mallory } = service.accounts;
    const [owned, own] = await Promise.all(["Owned", "Mallory's"].map((name) => service.sourceBase(name)));
    const [ownerKey, malloryKey] = await Promise.all(
      [owned!, own!].map(({ id }) => service.key({ [id]: "create" })),
    );
    const settings = { live: false };
    const bases = [
      await service.connect(victim, owned!, { api_key: ownerKey!, settings }),
      await service.connect(mallory, own!, { api_key: malloryKey!, settings }),
    ];
    for (let round = 0; round < rounds; round++) {
      const way = random.pick(WAYS);
      const proxy = random.int(0, 1);
      const { port, authority } = service.tunnels[proxy]!;
      const ca = readFileSync(authority, "utf8");
      const count = way === "one address" ? OF_ONE : OF_ALL;
      const third = random.int(10, 150);
      const sockets = Array.from({ length: count }, (_, at) =>
        open(port, addressOf(way, third, at), at % 2 === 0),
      );
      // Those with a key of their own work in the tunnels, too.
      if (way === "a valid key of their own")
        await Promise.all(
          Array.from({ length: NETWORKS }, (_, at) =>
            readThrough(port, addressOf(way, third, at), ca, own!.id, malloryKey!).catch(() => ""),
          ),
        );
      try {
        await Bun.sleep(OPENED_MS);
        for (let at = 0; at < ASKED; at++) {
          const answer = await readThrough(port, "127.201.7.9", ca, owned!.id, ownerKey!).catch(String);
          tally.add(
            !/^HTTP\/1\.1 200/.test(answer) && `${way}: the owner got ${answer.slice(0, 60)} in a tunnel`,
          );
          const { status } = await service.call(`${owned!.id}/Tasks?maxRecords=1`, ownerKey, { proxy });
          tally.add(status !== 200 && `${way}: the owner got ${status} without a tunnel`);
        }
      } finally {
        for (const socket of sockets) socket.destroy();
      }
      tally.addMany(count, 0, "");
    }
    for (const base of bases) await service.disconnect(base);
    return tally;
  },
};

function addressOf(way: Way, third: number, at: number): string {
  return way === "one address" ? `127.${third}.0.1` : `127.${third}.${at % NETWORKS}.1`;
}

function open(port: number, localAddress: string, isTunnel: boolean): net.Socket {
  const socket = net.connect({ port, host: "127.0.0.1", localAddress }, () => {
    if (isTunnel) socket.write(CONNECT);
  });
  return socket.resume().on("error", () => {});
}

/** Reads a record of the base through a tunnel of its own. @returns the answer's beginning */
function readThrough(
  port: number,
  localAddress: string,
  ca: string,
  baseId: string,
  key: string,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ port, host: "127.0.0.1", localAddress }, () => socket.write(CONNECT));
    const end = (how: () => void) => {
      clearTimeout(timer);
      socket.destroy();
      how();
    };
    const timer = setTimeout(() => end(() => reject(new Error("no answer"))), ANSWER_MS);
    socket.on("error", (error) => end(() => reject(error)));
    socket.on("close", () => end(() => reject(new Error("closed"))));
    socket.once("data", (head) => {
      if (!head.toString("latin1").startsWith("HTTP/1.1 200"))
        return end(() => resolve(head.toString("latin1")));
      const inner = tls.connect({ socket, servername: "api.airtable.com", ca }, () =>
        inner.write(
          `GET /v0/${baseId}/Tasks?maxRecords=1 HTTP/1.1\r\nHost: api.airtable.com\r\nAuthorization: Bearer ${key}\r\nConnection: close\r\n\r\n`,
        ),
      );
      inner.on("error", (error: Error) => end(() => reject(error)));
      inner.once("data", (answer: Buffer) => end(() => resolve(answer.toString("latin1"))));
    });
  });
}
