/** What the console writes to people. Plain text: a sentence, a link, how long it lasts. */
import type { Mail } from "../../../core/mail";

export function mails(consoleUrl: string) {
  const link = (path: string, query: Record<string, string>) =>
    `${consoleUrl}${path}?${new URLSearchParams(query)}`;
  const mail = (to: string, subject: string, lines: string[]): Mail => ({
    to,
    subject,
    text: [...lines, "", "Basetide"].join("\n"),
  });
  return {
    confirm: (to: string, token: string, next: string) =>
      mail(to, "Confirm your address", [
        "Open this link to confirm your address and go on:",
        link("/verify-email", { token, ...(next === "/" ? {} : { next }) }),
        "",
        "It lasts for a day. If you did not sign up, ignore it.",
      ]),
    /** To who has an account and signs up once more. */
    known: (to: string) =>
      mail(to, "You have an account already", [
        "Somebody signed up with your address, which has an account. If it was you, sign in:",
        link("/sign-in", {}).replace(/\?$/, ""),
        "",
        "If you have forgotten your password, the page there helps. If it was not you, nothing has changed.",
      ]),
    reset: (to: string, token: string) =>
      mail(to, "A new password", [
        "Open this link to choose a new password:",
        link("/reset-password", { token }),
        "",
        "It lasts for an hour. If you did not ask for it, ignore it: nothing has changed.",
      ]),
    invitation: (to: string, account: string, token: string) =>
      mail(to, `${account} invites you`, [
        `${account} invites you to their account. Open this link to accept:`,
        link("/invitation", { token }),
        "",
        "It lasts for seven days.",
      ]),
  };
}
