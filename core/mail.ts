/**
 * Sends e-mail by SMTP if SMTP_URL is set. If it is not, the mail with its link goes to the log during development. In
 * production the log says only that a mail was not sent: access to logs must not give access to accounts. Operators
 * then get a link from the command line (`account reset-link`).
 *
 * Every mail needs a permit, which counts it (`mail-permits.ts`).
 */
import type { Transporter } from "nodemailer";
import type { Config } from "./config";
import type { Logger } from "./log";
import type { MailPermit } from "./mail-permits";

export interface Mail {
  to: string;
  subject: string;
  /** Plain text. */
  text: string;
  /** The mail's global id: a recipient can recognize duplicates. */
  messageId?: string;
  headers?: Record<string, string>;
}

export interface Mailer {
  /** False: mail is not delivered, so no address can be confirmed by mail. */
  isConfigured: boolean;
  /** Never throws: an answer must not reveal whether there was a mail. */
  send(mail: Mail, permit: MailPermit): Promise<void>;
}

/** Time-outs of one delivery, ms. */
const TIMEOUTS = { connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 20_000 };

export function createMailer(
  config: Pick<Config, "smtpUrl" | "mailFrom" | "isProduction">,
  log: Logger,
): Mailer {
  const deliver = mailDelivery(config);
  if (deliver === null) {
    return {
      isConfigured: false,
      async send(mail) {
        const { to, subject, text } = mail;
        const shown = config.isProduction ? { to, subject } : { to, subject, text };
        log.warn(shown, "mail not sent: SMTP_URL is not set");
      },
    };
  }
  return {
    isConfigured: true,
    async send(mail, permit) {
      try {
        await deliver(mail, permit);
      } catch (error) {
        log.error({ error, subject: mail.subject }, "mail delivery failed");
      }
    },
  };
}

/** Delivers a mail or throws, for callers that retry; null if SMTP_URL is not set. */
export function mailDelivery({ smtpUrl, mailFrom }: Pick<Config, "smtpUrl" | "mailFrom">): SendMail | null {
  if (smtpUrl === undefined) return null;
  let transport: Promise<Transporter> | undefined;
  return async (mail) => {
    transport ??= openTransport(smtpUrl, mailFrom);
    await (await transport).sendMail(mail);
  };
}

/** Most processes send no mail, and need not keep the library in memory. */
async function openTransport(url: string, from?: string): Promise<Transporter> {
  const { createTransport } = await import("nodemailer");
  return createTransport({ url, ...TIMEOUTS }, { from });
}

/** Connects to the mail server and logs in, without sending a mail. @returns the reason if it cannot */
export async function checkMail({ smtpUrl }: Pick<Config, "smtpUrl">): Promise<string | undefined> {
  const transport = await openTransport(smtpUrl!);
  try {
    await transport.verify();
    return undefined;
  } catch (error) {
    return (error as Error).message;
  } finally {
    transport.close();
  }
}

export type SendMail = (mail: Mail, permit: MailPermit) => Promise<void>;
