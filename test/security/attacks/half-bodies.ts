/**
 * Requests whose bodies are announced and not sent, or sent in part: takes the memory that the proxies and the console have
 * for bodies, so that no other client can write.
 *
 * By each kind of client, a byte each from one address, or a quarter of the body from 60 networks.
 */
import net from "node:net";
import type { Random } from "../../../apps/sandbox/random";
import { until } from "../../support/poll";
import { type Attack, Tally } from "../attack";
import { PIECE_BYTES, roomOnLine } from "../line";
import type { Service, SourceBase } from "../service";

const FROM_ONE = 40;
const NETWORKS = 60;
const PROXY_BYTES = 16 * 1024 * 1024;
/** A console takes less; with more, it would refuse at once. */
const CONSOLE_BYTES = 1_000_000;
/** More than a proxy may hold in all. */
const PART = 1 / 4;
/** Longest wait until the parts are sent, ms. */
const SENT_MS = 8000;
/** Longest wait until requests of an attack before have been answered, ms. */
const LEFT_MS = 30_000;
/** The owner's write alone takes a few ms, ms. */
const SLOW_MS = 4000;

interface Target {
  port: number;
  /** Path and headers. */
  path: string;
  headers: string;
  bytes: number;
}

export const halfBodies: Attack = {
  name: "half-bodies",
  finding: "S22",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { victim, mallory } = service.accounts;
    const [owned, own, strange] = await Promise.all(
      ["Owned", "Mallory's", "Not connected"].map((name) => service.sourceBase(name)),
    );
    const keyOf = ({ id }: SourceBase) => service.key({ [id]: "create" });
    const [ownerKey, malloryKey, strangeKey] = await Promise.all([owned!, own!, strange!].map(keyOf));
    const settings = { live: false };
    const bases = [
      await service.connect(victim, owned!, { api_key: ownerKey!, settings }),
      await service.connect(mallory, own!, { api_key: malloryKey!, settings }),
    ];
    // What the attack before has left to be answered is over.
    await until(async () => (await write(service, strange!, strangeKey!, 1)).status === 200, {
      what: "a stranger may write",
      timeoutMs: LEFT_MS,
      intervalMs: 500,
    });
    const attackers: [who: string, path: string, key: string][] = [
      ["a stranger with a base of their own that is connected", `${own!.id}/Tasks`, malloryKey!],
      ["a stranger with a base that is not connected", `${strange!.id}/Tasks`, strangeKey!],
      ["a stranger with a made-up key", `${owned!.id}/Tasks`, "patNobody.x"],
      ["a stranger without a base", "meta/bases", "patNobody.x"],
    ];
    for (let round = 0; round < rounds; round++) {
      const isOneByte = random.chance(0.5);
      const [who, path, key] = random.pick(attackers);
      const targets = service.of("proxy").map(({ port }) => ({
        port,
        path: `/api.airtable.com/v0/${path}`,
        headers: `Authorization: Bearer ${key}\r\nContent-Type: application/json\r\n`,
        bytes: PROXY_BYTES,
      }));
      targets.push({
        port: service.of("console")[0]!.port,
        path: random.pick(["/sign-in", "/api/v1/bases", "/hooks/airtable/x"]),
        headers: "Content-Type: application/json\r\n",
        bytes: CONSOLE_BYTES,
      });
      using half = begin(targets, isOneByte, random);
      await Promise.race([half.sent, Bun.sleep(SENT_MS)]);
      const how = `${who}, ${isOneByte ? "a byte each" : `a part each from ${NETWORKS} networks`}`;
      const others: [string, Promise<{ status: number }>][] = [
        ["the owner's write", write(service, owned!, ownerKey!, 0)],
        ["the owner's write at the other proxy", write(service, owned!, ownerKey!, 1)],
        ["a write to a base that is not connected", write(service, strange!, await keyOf(strange!), 1)],
        ["a form of the console", form(service)],
      ];
      // While the owner's clients ask, new keys of a base get one call in 10 s.
      if (round === 0)
        others.push([
          "a write with a new key",
          write(service, owned!, await keyOf(owned!), random.int(0, 1)),
        ]);
      for (const [what, asking] of others) {
        const from = performance.now();
        const { status } = await asking.catch(() => ({ status: 0 }));
        const ms = performance.now() - from;
        const isRefused = status === 0 || status === 503 || status === 429;
        tally.add((isRefused || ms > SLOW_MS) && `${how}: ${what} got ${status} after ${ms.toFixed(0)} ms`);
      }
      tally.addMany(half.count, 0, "");
    }
    for (const base of bases) await service.disconnect(base);
    return tally;
  },
};

function write(service: Service, { id }: SourceBase, key: string, proxy: number) {
  return service.call(`${id}/Tasks`, key, {
    method: "POST",
    body: { fields: { Name: "mine" } },
    headers: { "x-client": "203.0.113.5" },
    proxy,
  });
}

/** A sign-in that fails: its form must be read. */
function form(service: Service) {
  const email = `${crypto.randomUUID()}@example.org`;
  return service
    .browser("203.0.113.6")
    .post("/forgot-password", { email })
    .then(({ status }) =>
      // Over its own limit of mails.
      ({ status: status === 429 ? 200 : status }),
    );
}

interface HalfSent extends Disposable {
  count: number;
  /** Resolves when all parts have been sent. */
  sent: Promise<unknown>;
}

function begin(targets: Target[], isOneByte: boolean, random: Random): HalfSent {
  const each = isOneByte ? FROM_ONE : NETWORKS;
  const second = random.int(0, 255);
  const requests = targets.flatMap(({ port, path, headers, bytes }) =>
    Array.from({ length: each }, (_, at) => {
      const from = isOneByte ? `198.18.${second}.1` : `198.18.${at}.1`;
      const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nX-Client: ${from}\r\n${headers}Content-Length: ${bytes}\r\n\r\n`;
      const socket = net.connect(port, "127.0.0.1").resume();
      socket.on("error", () => {});
      return { socket, sent: sendPart(socket, head, isOneByte ? 1 : Math.floor(bytes * PART)) };
    }),
  );
  return {
    count: requests.length,
    sent: Promise.all(requests.map(({ sent }) => sent)),
    [Symbol.dispose]() {
      for (const { socket } of requests) socket.destroy();
    },
  };
}

async function sendPart(socket: net.Socket, head: string, bytes: number): Promise<void> {
  socket.write(head);
  for (let left = bytes; left > 0 && !socket.destroyed; left -= PIECE_BYTES) {
    const piece = Math.min(left, PIECE_BYTES);
    await roomOnLine(piece);
    socket.write(Buffer.alloc(piece, "{"));
  }
}
