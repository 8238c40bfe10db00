import pino from "pino";
import { expect, test } from "vitest";
import { createMailer } from "../../core/mail";
import { startMailbox } from "../support/mailbox";

const mail = {
  to: "ada@example.org",
  subject: "A link",
  text: "Open this:\nhttps://console.example/reset?token=a%3Db\n",
};

test("a mail goes out by SMTP, from the configured sender", async () => {
  const mailbox = startMailbox();
  try {
    const mailer = createMailer(
      { smtpUrl: mailbox.url, mailFrom: "Us <us@example.org>" },
      pino({ level: "silent" }),
    );
    expect(mailer.isConfigured).toBe(true);
    await mailer.send(mail);
    expect(await mailbox.next("ada@example.org")).toMatchObject({
      subject: "A link",
      link: "https://console.example/reset?token=a%3Db",
    });
  } finally {
    mailbox.stop();
  }
});

test("a server that is away, or none, fails nobody: the mail is in the log, or that it was lost", async () => {
  const lines: { msg: string; text?: string }[] = [];
  const log = pino({ level: "info" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  await createMailer({ smtpUrl: "smtp://127.0.0.1:1", mailFrom: "us@example.org" }, log).send(mail);
  expect(lines.at(-1)!.msg).toBe("mail not delivered");
  const none = createMailer({ smtpUrl: undefined, mailFrom: "us@example.org" }, log);
  expect(none.isConfigured).toBe(false);
  await none.send(mail);
  expect(lines.at(-1)).toMatchObject({ msg: "mail not sent: SMTP_URL is not set", text: mail.text });
});
