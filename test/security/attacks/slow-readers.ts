/**
 * Reads of long answers whose client takes nothing: each holds a connection to Airtable, and a proxy has a limited number of
 * them.
 */
import net from "node:net";
import { type Attack, paced, Tally } from "../attack";
import type { Service } from "../service";
import { strangersAddress, WAYS } from "../who";

/** A page is longer than what the buffers on its way take. */
const RECORDS = 60;
const CELL = "x".repeat(100_000);
/** Airtable allows each base five calls a second. */
const BASES = 12;
const PER_SECOND = 4 * BASES;
/** More than the share of a network, of a key and of a base. */
const READERS = 180;
/** A key that was accepted has a larger share, which its base's calls a second do not fill. */
const OF_OWN = 16;
const ASKED = 3;

export const slowReaders: Attack = {
  name: "slow-readers",
  finding: "S22",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { victim, mallory } = service.accounts;
    // The source is busy while it receives them.
    const [owned, own, ...strange] = await service.setUp(() =>
      Promise.all(Array.from({ length: 2 + BASES }, () => longBase(service))),
    );
    const settings = { live: false };
    const bases = [
      await service.connect(victim, { id: owned!.id, recordIds: [] }, { api_key: owned!.key, settings }),
      await service.connect(mallory, { id: own!.id, recordIds: [] }, { api_key: own!.key, settings }),
    ];
    for (let round = 0; round < rounds; round++) {
      const way = random.pick(WAYS);
      const proxy = random.int(0, 1);
      const address = strangersAddress(way, random);
      const isOwn = way === "a valid key of their own";
      const count = isOwn ? OF_OWN : READERS;
      const sockets: net.Socket[] = [];
      const { port } = service.of("proxy")[proxy]!;
      const read = async (at: number) => {
        const { id, key } = isOwn ? own! : strange[at % BASES]!;
        sockets.push(beginToRead(port, id, key, address()));
      };
      try {
        await paced(
          Array.from({ length: count }, (_, at) => at),
          isOwn ? 4 : PER_SECOND,
          read,
        );
        for (let at = 0; at < ASKED; at++) {
          for (const [who, { id, key }, from] of [
            ["the owner", owned!, "203.0.113.30"],
            ["a client of another base", strange[at]!, "203.0.113.31"],
          ] as const) {
            const headers = { "x-client": from };
            const asked = await service.call(`${id}/Tasks`, key, { headers, proxy }).catch(() => undefined);
            const isWhole = asked?.status === 200 && asked.text.length > RECORDS * CELL.length;
            // Over the rate of its base, which it shares with the strangers' readers: not what is attacked.
            if (asked?.status !== 429)
              tally.add(
                !isWhole && `${way}: ${who} got ${asked?.status ?? "nothing"}, ${asked?.text.length} bytes`,
              );
          }
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

interface LongBase {
  id: string;
  key: string;
}

async function longBase(service: Service): Promise<LongBase> {
  const { baseId: id } = (await service.sandbox.call("POST", "bases", {
    name: "Long",
    tables: [
      {
        name: "Tasks",
        fields: [
          { name: "Name", type: "singleLineText" },
          { name: "Text", type: "multilineText" },
        ],
        records: Array.from({ length: RECORDS }, (_, at) => ({ fields: { Name: `n${at}`, Text: CELL } })),
      },
    ],
  })) as { baseId: string };
  return { id, key: await service.key({ [id]: "create" }) };
}

/** Reads no byte of the answer. */
function beginToRead(port: number, id: string, key: string, from: string): net.Socket {
  const socket = net.connect(port, "127.0.0.1", () =>
    socket.write(
      `GET /api.airtable.com/v0/${id}/Tasks HTTP/1.1\r\nHost: x\r\nX-Client: ${from}\r\nAuthorization: Bearer ${key}\r\n\r\n`,
    ),
  );
  socket.pause();
  return socket.on("error", () => {});
}
