/** Sign-ins with made-up addresses from one address or 60 networks: fills the queue in which passwords are checked. */
import { type Attack, Tally } from "../attack";

const NETWORKS = 60;
/** As many as the limit of a network allows in a minute. */
const PER_NETWORK = 8;
const FILLED_MS = 500;

export const signInQueue: Attack = {
  name: "sign-in-queue",
  finding: "S22",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { email, password } = service.accounts.third;
    for (let round = 0; round < rounds; round++) {
      // Their own limits are of a minute.
      const second = random.int(20, 250);
      const attempts = Array.from({ length: NETWORKS * PER_NETWORK }, (_, at) =>
        service
          .browser(`198.${second}.${at % NETWORKS}.1`)
          .post("/sign-in", { email: `${crypto.randomUUID()}@example.org`, password: "a guess", next: "/" })
          .catch(() => undefined),
      );
      await Bun.sleep(FILLED_MS);
      const unknown = service.browser(`203.0.${random.int(1, 250)}.7`);
      const { status } = await unknown.post("/sign-in", { email, password, next: "/bases" });
      tally.add(status !== 303 && status !== 302 && `the owner's new browser got ${status}`);
      const answers = await Promise.all(attempts);
      const accepted = answers.filter((answer) => answer?.status === 303).length;
      tally.addMany(answers.length, accepted, "made-up sign-in was accepted");
    }
    return tally;
  },
};
