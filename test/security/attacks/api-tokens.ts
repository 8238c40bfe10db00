/**
 * Calls of the API with made-up tokens, from one address or from 60 networks: takes the counters of tokens, so that valid
 * ones are refused.
 */
import net from "node:net";
import { type Attack, Tally } from "../attack";

const PER_ROUND = 3000;
const CONNECTIONS = 8;
/** Calls that are sent before their answers have arrived. */
const AT_ONCE = 25;
/** The pause between them, ms: what is tested is the counters, not how many calls a processor can refuse. */
const PAUSE_MS = 100;

export const apiTokens: Attack = {
  name: "api-tokens",
  finding: "S26",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { port } = service.of("console")[0]!;
    for (let round = 0; round < rounds; round++) {
      const isSpread = random.chance(0.5);
      const call = () => {
        const from = isSpread ? `198.18.${random.int(1, 60)}.1` : "198.18.0.1";
        return `GET /api/v1/bases HTTP/1.1\r\nHost: x\r\nX-Client: ${from}\r\nAuthorization: Bearer made-up-${crypto.randomUUID()}\r\n\r\n`;
      };
      const statuses = await Promise.all(
        Array.from({ length: CONNECTIONS }, () => flood(port, call, PER_ROUND / CONNECTIONS)),
      );
      const served = statuses.flat().filter((status) => status < 400).length;
      tally.addMany(PER_ROUND, served, "made-up token was accepted");
      for (const account of Object.values(service.accounts)) {
        const { status } = await account.api("GET", "platforms");
        tally.add(status !== 200 && `the token of ${account.name} got ${status}`);
      }
    }
    return tally;
  },
};

/** @returns the statuses of `count` calls on one connection */
function flood(port: number, call: () => string, count: number): Promise<number[]> {
  return new Promise((resolve) => {
    const statuses: number[] = [];
    let sent = 0;
    const socket = net.connect(port, "127.0.0.1");
    const send = () => {
      const some = Math.min(AT_ONCE, count - sent);
      sent += some;
      socket.write(Array.from({ length: some }, call).join(""));
    };
    socket.on("connect", send);
    socket.on("data", (bytes) => {
      for (const [, status] of bytes.toString("latin1").matchAll(/HTTP\/1\.1 (\d{3})/g))
        statuses.push(Number(status));
      if (statuses.length >= count) socket.destroy();
      else if (statuses.length >= sent) setTimeout(send, PAUSE_MS);
    });
    socket.setTimeout(10_000, () => socket.destroy());
    socket.on("error", () => {});
    socket.on("close", () => resolve(statuses));
  });
}
