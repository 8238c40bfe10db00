/**
 * Connections to the console that stay open: pages of which nothing is read, requests for a stream of events, and pages that
 * ask again all the time. Pages refresh by asking again, so no connection has to stay open for them.
 */
import net from "node:net";
import { type Attack, Tally } from "../attack";
import { strangersAddress, WAYS } from "../who";

const OPEN = 300;
const OPENED_MS = 1500;
const ASKED = 3;
/** The owner's page alone takes some ms, ms. */
const SLOW_MS = 4000;

export const openPages: Attack = {
  name: "open-pages",
  finding: "S22",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { victim, mallory } = service.accounts;
    const { port } = service.of("console")[0]!;
    const [owner, stranger] = [
      service.browser(`203.0.${random.int(1, 250)}.40`),
      service.browser("203.0.113.41"),
    ];
    for (const [browser, { email, password }] of [
      [owner, victim],
      [stranger, mallory],
    ] as const)
      await browser.post("/sign-in", { email, password, next: "/bases" });
    const session = [...stranger.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    for (let round = 0; round < rounds; round++) {
      const way = random.pick(WAYS);
      const address = strangersAddress(way, random);
      const cookie = way === "a valid key of their own" ? `Cookie: ${session}\r\n` : "";
      const sockets = Array.from({ length: OPEN }, () => {
        const path = random.pick(["/", "/docs", "/bases", "/bases?fragment=list", "/status/x"]);
        const accept = random.pick(["text/event-stream", "text/html"]);
        const head = `GET ${path} HTTP/1.1\r\nHost: x\r\nX-Client: ${address()}\r\nAccept: ${accept}\r\n${cookie}\r\n`;
        // Several requests on each, whose answers are not read.
        const socket = net.connect(port, "127.0.0.1", () => socket.write(head.repeat(2)));
        socket.pause();
        return socket.on("error", () => {});
      });
      try {
        await Bun.sleep(OPENED_MS);
        for (let at = 0; at < ASKED; at++) {
          const from = performance.now();
          const { status } = await owner.get("/bases").catch(() => ({ status: 0 }));
          const ms = performance.now() - from;
          tally.add(
            (status !== 200 || ms > SLOW_MS) &&
              `${way}: the owner's page got ${status} in ${ms.toFixed(0)} ms`,
          );
          const answer = await victim.api("GET", "platforms").catch(() => ({ status: 0 }));
          tally.add(answer.status !== 200 && `${way}: the owner's call of the API got ${answer.status}`);
        }
      } finally {
        for (const socket of sockets) socket.destroy();
      }
      tally.addMany(OPEN, 0, "");
    }
    return tally;
  },
};
