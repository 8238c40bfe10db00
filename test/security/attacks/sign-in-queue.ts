/** Sign-ins with made-up addresses from one address or 60 networks: fills the queue in which passwords are checked. */
import { type Attack, paced, Tally } from "../attack";

const NETWORKS = 60;
/** Below the limit of a network in a minute, and as many as arrive until the owner has signed in. */
const PER_NETWORK = 3;
/** Ten times as many as are checked. */
const PER_SECOND = 40;
const FILLED_MS = 3000;

export const signInQueue: Attack = {
  name: "sign-in-queue",
  finding: "S22",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { email, password } = service.accounts.third;
    for (let round = 0; round < rounds; round++) {
      // Their own limits are of a minute.
      const second = random.int(20, 250);
      let accepted = 0;
      const attempts = paced(Array(NETWORKS * PER_NETWORK), PER_SECOND, async (_, at) => {
        const email = `${crypto.randomUUID()}@example.org`;
        const browser = service.browser(`198.${second}.${at % NETWORKS}.1`);
        const { status } = await browser.post("/sign-in", { email, password: "a guess", next: "/" });
        if (status === 303) accepted++;
      });
      await Bun.sleep(FILLED_MS);
      const unknown = service.browser(`203.0.${random.int(1, 250)}.7`);
      const { status } = await unknown.post("/sign-in", { email, password, next: "/bases" });
      tally.add(status !== 303 && status !== 302 && `the owner's new browser got ${status}`);
      await attempts;
      tally.addMany(NETWORKS * PER_NETWORK, accepted, "made-up sign-in was accepted");
    }
    return tally;
  },
};
