/** Names that customers choose, with bytes that control an operator's terminal. */
import type { Random } from "../../../apps/sandbox/random";
import { type Attack, Tally } from "../attack";

const NASTY = [
  "\x1b]0;pwned\x07",
  "\x1b[2J",
  "\x9b31m",
  "\x08\x08",
  "\r",
  "\u202e",
  "\u2066",
  "\x01",
  "\x7f",
  "\x85",
];
/** Characters that a terminal acts on. Tabs and line ends belong to the table itself. */
const COMMANDING = /(?![\t\n])\p{Cc}|\p{Bidi_Control}/u;

export const terminal: Attack = {
  name: "terminal",
  finding: "S15",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { mallory } = service.accounts;
    for (let round = 0; round < rounds; round++) {
      const source = await service.sourceBase(`Nice${nasty(random)}${nasty(random)} base ${round}`);
      const key = await service.key({ [source.id]: "create" });
      const base = await service.connect(mallory, source, { api_key: key, settings: { live: false } });
      await mallory.api("POST", "requests", { kind: "other", message: `Please${nasty(random)}` });
      for (const words of [
        ["base", "list"],
        ["base", "show", base.id],
        ["request", "list"],
        ["audit", "list"],
      ]) {
        const said = await service.operator(...words);
        const found = COMMANDING.exec(said)?.[0];
        tally.add(found !== undefined && `operator ${words.join(" ")} prints ${JSON.stringify(found)}`);
      }
      await service.disconnect(base);
    }
    return tally;
  },
};

function nasty(random: Random): string {
  return random.pick(NASTY);
}
