/**
 * Large bodies from unknown clients, held while each waits in the queue: exhausts the proxy's memory.
 *
 * Half come from one network, where the queue's limit per network refuses most of them, and half from networks of their
 * own, where only the budget of all bodies does.
 */
import net from "node:net";
import { type Attack, Tally } from "../attack";
import { PIECE_BYTES, roomOnLine } from "../line";
import { memoryOf, randomAddress } from "../service";

const PER_ROUND = 80;
const BODY_BYTES = 16 * 1024 * 1024 - 10;
const PIECE = Buffer.alloc(PIECE_BYTES);
/** The memory that all current bodies may take, and the overhead of the runtime. */
const MAX_GROWTH_BYTES = 400 * 1024 * 1024;
const HOLD_MS = 12_000;

export const bodies: Attack = {
  name: "bodies",
  finding: "S10",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { victim } = service.accounts;
    const source = await service.sourceBase("Bodies");
    const ownerKey = await service.key({ [source.id]: "create" });
    const base = await service.connect(victim, source, { api_key: ownerKey, settings: { live: false } });
    await victim.change(base.id, { paused: true });
    // Before the first round: memory that a round has taken, and that is not given back, counts in the next.
    const atFirst = new Map(service.of("proxy").map(({ pid }) => [pid, memoryOf(pid)]));
    for (let round = 0; round < rounds; round++) {
      const proxy = service.of("proxy")[random.int(0, 1)]!;
      // A restarted proxy is another process; its death is counted elsewhere.
      const before = atFirst.get(proxy.pid) ?? memoryOf(proxy.pid);
      let peak = before;
      const sampling = setInterval(() => (peak = Math.max(peak, memoryOf(proxy.pid))), 50);
      const own = randomAddress(random);
      const statuses = await Promise.all(
        Array.from({ length: PER_ROUND }, (_, at) => {
          const key = random.pick(["", "Authorization: Bearer x.y\r\n", `Authorization: Bearer x.${at}\r\n`]);
          const from = at % 2 === 0 ? own : randomAddress(random);
          return send(proxy.port, source.id, `${key}X-Client: ${from}\r\n`);
        }),
      );
      clearInterval(sampling);
      const grown = peak - before;
      const held = Math.floor((grown - MAX_GROWTH_BYTES) / BODY_BYTES);
      const megabytes = (grown / 1024 ** 2).toFixed(0);
      tally.addMany(
        PER_ROUND,
        Math.max(0, Math.min(PER_ROUND, held)),
        `body held beyond 400 MB (grew by ${megabytes} MB)`,
      );
      const served = statuses.filter((status) => status >= 200 && status < 300).length;
      tally.addMany(served, served, "body of an unknown client was forwarded and accepted");
    }
    await service.disconnect(base);
    return tally;
  },
};

/**
 * One request whose body is always the same piece, so that only the proxy's memory grows.
 *
 * @returns the status; 0 without an answer
 */
function send(port: number, baseId: string, who: string): Promise<number> {
  return new Promise((resolve) => {
    let [sent, status] = [0, 0];
    const socket = net.connect(port, "127.0.0.1", () => {
      socket.write(
        `POST /api.airtable.com/v0/${baseId}/Tasks HTTP/1.1\r\nHost: x\r\n${who}Content-Type: application/json\r\nContent-Length: ${BODY_BYTES}\r\nConnection: close\r\n\r\n`,
      );
      void pump();
    });
    const pump = async () => {
      while (sent < BODY_BYTES) {
        const piece = PIECE.subarray(0, Math.min(PIECE_BYTES, BODY_BYTES - sent));
        sent += piece.length;
        await roomOnLine(piece.length);
        if (socket.destroyed || !socket.write(piece)) return;
      }
    };
    const timer = setTimeout(() => socket.destroy(), HOLD_MS);
    socket.on("drain", () => void pump());
    socket.on("data", (data) => (status ||= Number(/^HTTP\/1.1 (\d+)/.exec(data.toString("latin1"))?.[1])));
    socket.on("error", () => {});
    socket.on("close", () => {
      clearTimeout(timer);
      resolve(status || 0);
    });
  });
}
