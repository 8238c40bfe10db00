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
  /** Names the mail wherever it arrives: who gets it twice can tell. */
  messageId?: string;
  headers?: Record<string, string>;
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
  const deliver = mailDelivery(config);
  if (deliver === null) {
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
  return {
    isConfigured: true,
    async send(mail) {
      try {
        await deliver(mail);
      } catch (error) {
        log.error({ error, subject: mail.subject }, "mail not delivered");
      }
    },
  };
}

/** Delivers a mail or throws, for who tries again; null where SMTP_URL is not set. */
export function mailDelivery({
  smtpUrl,
  mailFrom,
}: Pick<Config, "smtpUrl" | "mailFrom">): ((mail: Mail) => Promise<void>) | null {
  if (smtpUrl === undefined) return null;
  const transport = createTransport({ url: smtpUrl, ...TIMEOUTS }, { from: mailFrom });
  return async (mail) => void (await transport.sendMail(mail));
}
