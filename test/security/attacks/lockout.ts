/** Guesses a user's password so often that the owner cannot sign in. */
import { type Attack, paced, Tally } from "../attack";
import { randomAddress } from "../service";

const GUESSES = 45;
const PER_SECOND = 40;

export const lockout: Attack = {
  name: "lockout",
  finding: "S11",
  async run(service, rounds, random) {
    const tally = new Tally();
    for (let round = 0; round < rounds; round++) {
      const email = `locked${random.int(1, 1e9)}@example.org`;
      const password = "correct horse battery";
      await service.operator("account", "create", "--email", email, "--password", password, "--json");
      const known = service.browser(randomAddress(random));
      const signIn = (browser = known) => browser.post("/sign-in", { email, password, next: "/bases" });
      await signIn();
      await known.post("/sign-out", {});
      // From one address in even rounds, from one address per guess in odd ones.
      const address = randomAddress(random);
      const isSpread = round % 2 === 1;
      await paced(Array(GUESSES), PER_SECOND, async (_, guess) => {
        const from = isSpread ? randomAddress(random) : address;
        await service.browser(from).post("/sign-in", { email, password: `guess ${guess}`, next: "/bases" });
      });
      const again = await signIn();
      tally.addMany(GUESSES, 0, "");
      tally.add(
        again.status !== 303 && again.status !== 302 && `a browser that was signed in: ${again.status}`,
      );
      if (!isSpread) {
        const other = await signIn(service.browser(randomAddress(random)));
        tally.add(
          other.status !== 303 && other.status !== 302 && `another browser of the owner's: ${other.status}`,
        );
      }
      tally.add(await afterReset(service, email, random));
    }
    return tally;
  },
};

/** A new password, by mail, ends it in any case. */
async function afterReset(
  service: Parameters<Attack["run"]>[0],
  email: string,
  random: Parameters<Attack["run"]>[2],
): Promise<string | undefined> {
  const browser = service.browser(randomAddress(random));
  const asked = await browser.post("/forgot-password", { email });
  if (asked.status === 429) return "no mail for a new password";
  const { link } = await service.mailbox.next(email);
  const token = new URL(link).searchParams.get("token") ?? "";
  const password = "another horse battery";
  await browser.post("/reset-password", { token, password });
  const { status } = await browser.post("/sign-in", { email, password, next: "/bases" });
  return status === 302 || status === 303 ? undefined : `after a new password: ${status}`;
}
