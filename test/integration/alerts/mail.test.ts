import pino from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createMailer } from "../../../core/mail";
import { createMailPermits } from "../../../core/mail-permits";
import { type TestControl, testControl } from "../../support/control-support";
import { startMailbox } from "../../support/mailbox";

const mail = {
  to: "ada@example.org",
  subject: "A link",
  text: "Open this:\nhttps://console.example/reset?token=a%3Db\n",
};

let control: TestControl;
beforeAll(async () => {
  control = await testControl();
});
afterAll(() => control?.[Symbol.asyncDispose]());

const permit = () => createMailPermits(control.ctx).take({ reason: "sign_in_notice", to: mail.to });

test("a mail is sent by SMTP, from the configured sender", async () => {
  const mailbox = startMailbox();
  try {
    const mailer = createMailer(
      { smtpUrl: mailbox.url, mailFrom: "Us <us@example.org>", isProduction: true },
      pino({ level: "silent" }),
    );
    expect(mailer.isConfigured).toBe(true);
    await mailer.send(mail, await permit());
    expect(await mailbox.next("ada@example.org")).toMatchObject({
      subject: "A link",
      link: "https://console.example/reset?token=a%3Db",
    });
  } finally {
    mailbox.stop();
  }
});

function logged() {
  const lines: { msg: string; text?: string }[] = [];
  const log = pino({ level: "info" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return { lines, log };
}

test("an unreachable server fails no request: the log says that the mail was lost", async () => {
  const { lines, log } = logged();
  const away = { smtpUrl: "smtp://127.0.0.1:1", mailFrom: "us@example.org", isProduction: true };
  await createMailer(away, log).send(mail, await permit());
  expect(lines.at(-1)!.msg).toBe("mail delivery failed");
});

test("without a server the mail is in the log in development; in production the log holds no link", async () => {
  const { lines, log } = logged();
  const none = { smtpUrl: undefined, mailFrom: "us@example.org" };
  const mailer = createMailer({ ...none, isProduction: false }, log);
  expect(mailer.isConfigured).toBe(false);
  await mailer.send(mail, await permit());
  expect(lines.at(-1)).toMatchObject({ msg: "mail not sent: SMTP_URL is not set", text: mail.text });
  await createMailer({ ...none, isProduction: true }, log).send(mail, await permit());
  expect(lines.at(-1)).toMatchObject({ msg: "mail not sent: SMTP_URL is not set", to: mail.to });
  expect(JSON.stringify(lines.at(-1))).not.toMatch(/token|https?:/);
});
