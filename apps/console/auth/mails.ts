/** The console's mails, in plain text: a sentence, a link, and how long the link works. */
import type { Mail } from "../../../core/mail";
import { inUtc } from "../../../views/format";

export function mails(consoleUrl: string) {
  const link = (path: string, query: Record<string, string>) =>
    `${consoleUrl}${path}?${new URLSearchParams(query)}`;
  const page = (path: string) => `${consoleUrl}${path}`;
  const mail = (to: string, subject: string, lines: string[]): Mail => ({
    to,
    subject,
    text: [...lines, "", "Basetide"].join("\n"),
  });
  return {
    confirm: (to: string, token: string, next: string) =>
      mail(to, "Confirm your address", [
        "Open this link to confirm your address and continue:",
        link("/verify-email", { token, ...(next === "/" ? {} : { next }) }),
        "",
        "The link is valid for one day. If you did not sign up, ignore this e-mail.",
      ]),
    /** For a user who signs up with an address that already has an account. */
    known: (to: string) =>
      mail(to, "You already have an account", [
        "Someone signed up with your address, which already has an account. If it was you, sign in:",
        page("/sign-in"),
        "",
        "If you have forgotten your password, you can reset it there. If it was not you, no action is needed.",
      ]),
    reset: (to: string, token: string) =>
      mail(to, "Reset your password", [
        "Open this link to choose a new password:",
        link("/reset-password", { token }),
        "",
        "The link is valid for one hour. If you did not request it, ignore this e-mail; nothing has changed.",
      ]),
    invitation: (to: string, account: string, token: string) =>
      mail(to, `${account} invites you`, [
        `${account} invites you to their account. Open this link to accept:`,
        link("/invitation", { token }),
        "",
        "The link is valid for seven days.",
      ]),
    /** Notices about the security of an account. */
    resetDone: (to: string) =>
      mail(to, "Your password was changed", [
        "Your password was changed with a link that we sent to this address. All sessions were signed out.",
        "",
        "If this was not you, someone else can read your mail. Secure your mailbox, then set a new password:",
        page("/forgot-password"),
      ]),
    newBrowser: (to: string, network: string, at: Date) =>
      mail(to, "New sign-in to Basetide", [
        `An unrecognized browser signed in to your account from ${network} on ${inUtc(at)}.`,
        "",
        "If this was not you, change your password. That ends all other sessions:",
        page("/account"),
      ]),
    /** @param scopes what it may do */
    newToken: (to: string, name: string, by: string, scopes: readonly string[]) =>
      mail(to, "New API token in your account", [
        `${by} created the API token "${name}", with the scopes ${scopes.join(", ")}.`,
        "",
        "If you did not expect this, revoke the token and look at the account's activity:",
        page("/account/tokens"),
      ]),
  };
}
