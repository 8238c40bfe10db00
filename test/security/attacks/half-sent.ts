/** Hundreds of requests that begin and never end: others must be served meanwhile, and these must be closed. */
import net from "node:net";
import type { Random } from "../../../apps/sandbox/random";
import { until } from "../../support/poll";
import type { Supervised } from "../../support/supervised";
import { type Attack, Tally } from "../attack";
import { FREEZE_MS, healthMs } from "../service";

const PER_ROUND = 150;
const LOOKS = 5;
const CHECK_EVERY_MS = 300;
/** A connection that has not sent a request's head within this time is closed, ms. */
const CLOSED_MS = 100_000;

export const halfSent: Attack = {
  name: "half-sent",
  finding: "(held)",
  async run(service, rounds, random) {
    const tally = new Tally();
    const targets = [...service.of("proxy"), ...service.of("console")];
    for (let round = 0; round < rounds; round++) {
      const target = random.pick(targets);
      using begun = begin(target, random);
      const ms: (number | undefined)[] = [];
      for (let look = 0; look < LOOKS; look++) {
        ms.push(await healthMs(target.port));
        await Bun.sleep(CHECK_EVERY_MS);
      }
      const isSlow = ms.some((one) => one === undefined || one > FREEZE_MS);
      const harm = `half-sent request that kept the ${target.name} from answering`;
      tally.addMany(begun.sent, isSlow ? begun.sent : 0, harm);
    }
    return tally;
  },
  async patiently(service, random) {
    const tally = new Tally();
    using begun = begin(random.pick([...service.of("proxy"), ...service.of("console")]), random);
    await until(() => begun.open <= 0, { what: "closed", timeoutMs: CLOSED_MS, intervalMs: 250 }).catch(
      () => {},
    );
    tally.addMany(begun.sent, Math.max(0, begun.open), "half-sent request still open");
    return tally;
  },
};

interface Begun extends Disposable {
  sent: number;
  readonly open: number;
}

function begin({ port }: Supervised, random: Random): Begun {
  const text = random.pick([
    "GET /api.airtable.com/v0/x HTTP/1.1\r\nHost: x\r\nX-A: ",
    "POST /sign-in HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nemail=",
    "POST /api.airtable.com/v0/appX/Tasks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{",
    "G",
    "",
  ]);
  const sockets = new Set<net.Socket>();
  for (let count = 0; count < PER_ROUND; count++) {
    const socket = net.connect(port, "127.0.0.1", () => socket.write(text));
    sockets.add(socket);
    // A client that does not read does not see the end either.
    socket
      .resume()
      .on("close", () => sockets.delete(socket))
      .on("error", () => {});
  }
  return {
    sent: PER_ROUND,
    get open() {
      return sockets.size;
    },
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy();
    },
  };
}
