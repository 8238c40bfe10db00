/**
 * Someone who knows a password has seen a code of the authenticator app: signs in with it again, and turns the second
 * factor off with a session and the password.
 */
import { totpCode } from "../../support/totp";
import { type Attack, Tally } from "../attack";
import { PASSWORD, person, signIn } from "../people";

const PATH = "/account/sign-in/two-factor";

export const seenCode: Attack = {
  name: "seen-code",
  finding: "S30",
  async run(service, rounds, random) {
    const tally = new Tally();
    for (let round = 0; round < rounds; round++) {
      const user = await person(service, random);
      const owner = await signIn(service, user, random);
      await owner.post(PATH, { password: PASSWORD });
      const { text } = await owner.get(PATH);
      const uri = /name="uri" value="([^"]+)"/.exec(text)![1]!.replaceAll("&amp;", "&");
      const codes = /name="codes" value="([^"]+)"/.exec(text)![1]!;
      const secret = new URL(uri).searchParams.get("secret")!;
      const seen = totpCode(secret);
      const on = await owner.post(`${PATH}/confirm`, { uri, codes, code: seen });
      if (on.status !== 303) throw new Error(`the second factor is not on: ${on.status}`);
      const next = totpCode(secret, 1);
      const isOpen = async (code: string) => {
        const browser = await signIn(service, user, random);
        await browser.post("/sign-in/code", { code, next: "/bases" });
        return (await browser.get("/bases")).status === 200;
      };
      tally.add((await isOpen(seen)) && "the code that turned it on signs in");
      if (!(await isOpen(next))) throw new Error("the owner's next code does not sign in");
      const again = await Promise.all([isOpen(next), isOpen(next)]);
      for (const opened of again) tally.add(opened && "a code signs in twice");
      for (const code of ["", "000000", seen, next, "aaaaa-bbbbb"]) {
        const { status } = await owner.post(`${PATH}/disable`, { password: PASSWORD, code });
        tally.add(status === 303 && `turned off with ${JSON.stringify(code)}`);
        const made = await owner.post(`${PATH}/codes`, { password: PASSWORD, code });
        tally.add(made.status === 303 && `new backup codes with ${JSON.stringify(code)}`);
      }
    }
    return tally;
  },
};
