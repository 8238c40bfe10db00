/**
 * E-mail to people: by SMTP where SMTP_URL is set. Where it is not, the mail with its link goes to the log, so that
 * whoever runs the service can pass it on.
 */
import { createTransport } from "nodemailer";
import type { Config } from "./config";
import type { Logger } from "./log";

export interface Mail {
  to: string;
  subject: string;
  /** Plain text. */
  text: string;
}

export interface Mailer {
  /** Does mail reach anybody? Where not, nobody can be asked to confirm an address. */
  isConfigured: boolean;
  /** Never throws: who waits for an answer must not learn from it whether there was a mail. */
  send(mail: Mail): Promise<void>;
}

/** Longest waits of one delivery, in ms. */
const TIMEOUTS = { connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 20_000 };

export function createMailer(config: Pick<Config, "smtpUrl" | "mailFrom">, log: Logger): Mailer {
  const { smtpUrl, mailFrom } = config;
  if (smtpUrl === undefined) {
    return {
      isConfigured: false,
      async send(mail) {
        log.warn(
          { to: mail.to, subject: mail.subject, text: mail.text },
          "mail not sent: SMTP_URL is not set",
        );
      },
    };
  }
  const transport = createTransport({ url: smtpUrl, ...TIMEOUTS }, { from: mailFrom });
  return {
    isConfigured: true,
    async send(mail) {
      try {
        await transport.sendMail(mail);
      } catch (error) {
        log.error({ error, subject: mail.subject }, "mail not delivered");
      }
    },
  };
}
