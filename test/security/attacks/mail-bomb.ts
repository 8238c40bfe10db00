/** Makes the service send mails to people who did not request them, without limit. */

import { until } from "../../support/poll";
import { type Attack, paced, Tally } from "../attack";
import { randomAddress } from "../service";

const PER_ROUND = 40;
const PER_SECOND = 20;
/** The most mails to one person within an hour, and the most that one account may cause. */
const MOST_TO_ONE = 10;
const MOST_OF_ACCOUNT = 60;

export const mailBomb: Attack = {
  name: "mail-bomb",
  finding: "S12",
  async run(service, rounds, random) {
    const tally = new Tally();
    const email = `bomber${random.int(1, 1e9)}@example.org`;
    const password = "correct horse battery";
    await service.operator("account", "create", "--email", email, "--password", password, "--json");
    const bomber = service.browser(randomAddress(random));
    await bomber.post("/sign-in", { email, password, next: "/bases" });
    let ofAccount = 0;
    for (let round = 0; round < rounds; round++) {
      const target = `ceo${random.int(1, 1e9)}@victim.example`;
      const way = round % 3;
      const mark = `${random.int(1, 1e9)}.victim.example`;
      await paced(Array(PER_ROUND), PER_SECOND, async (_, at) => {
        const browser = service.browser(randomAddress(random));
        if (way === 0) await bomber.post("/account/members", { email: target });
        else if (way === 1) await bomber.post("/account/members", { email: `p${at}@${mark}` });
        else {
          await browser.post("/signup", { email: target, password: "correct horse battery", next: "/bases" });
          await browser.post("/forgot-password", { email: target });
        }
      });
      await quiet(() => service.mailbox.mails.length);
      const sent = (of: (to: string) => boolean) => service.mailbox.mails.filter(({ to }) => of(to)).length;
      const toOne = sent((to) => to.toLowerCase() === target);
      const toAll = sent((to) => to.endsWith(mark));
      if (way < 2) ofAccount += way === 0 ? toOne : toAll;
      const excess = Math.max(0, toOne - MOST_TO_ONE) + Math.max(0, ofAccount - MOST_OF_ACCOUNT);
      tally.addMany(
        PER_ROUND,
        Math.min(PER_ROUND, excess),
        `mail too many (${toOne} to one, ${ofAccount} by one account)`,
      );
    }
    return tally;
  },
};

/** Waits until no more mails arrive. */
async function quiet(count: () => number): Promise<void> {
  let [last, since] = [-1, performance.now()];
  await until(
    () => {
      if (count() !== last) [last, since] = [count(), performance.now()];
      return performance.now() - since > 500;
    },
    { what: "no more mails arrive", timeoutMs: 20_000, intervalMs: 50 },
  );
}
