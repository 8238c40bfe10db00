/** A mail server that stores what it receives, with the part of SMTP that a client needs. */
import type { Socket } from "bun";
import { isNotice } from "./notices";
import { until } from "./poll";

export interface KeptMail {
  to: string;
  subject: string;
  text: string;
  /** Its first link. */
  link: string;
}

export interface Mailbox {
  /** For SMTP_URL. */
  url: string;
  mails: KeptMail[];
  /** The next mail to `to` that was not returned before. Skips notices. */
  next(to: string): Promise<KeptMail>;
  stop(): void;
}

export function startMailbox(): Mailbox {
  const mails: KeptMail[] = [];
  const read = new Set<KeptMail>();
  const server = Bun.listen<Session>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.data = { unread: "", to: "", inData: false };
        socket.write("220 mailbox\r\n");
      },
      data(socket, chunk) {
        socket.data.unread += chunk.toString();
        converse(socket, (mail) => mails.push(mail));
      },
    },
  });
  return {
    url: `smtp://127.0.0.1:${server.port}`,
    mails,
    async next(to) {
      const mail = await until(() => mails.find((one) => one.to === to && !read.has(one) && !isNotice(one)), {
        what: `a mail to ${to}`,
      });
      read.add(mail);
      return mail;
    },
    stop: () => server.stop(true),
  };
}

interface Session {
  unread: string;
  to: string;
  inData: boolean;
}

function converse(socket: Socket<Session>, keep: (mail: KeptMail) => void): void {
  const session = socket.data;
  for (;;) {
    const end = session.inData ? "\r\n.\r\n" : "\r\n";
    const index = session.unread.indexOf(end);
    if (index < 0) return;
    const text = session.unread.slice(0, index);
    session.unread = session.unread.slice(index + end.length);
    if (session.inData) {
      session.inData = false;
      keep(parse(session.to, text));
      socket.write("250 kept\r\n");
      continue;
    }
    const word = text.slice(0, 4).toUpperCase();
    if (word === "RCPT") session.to = /<(.*)>/.exec(text)?.[1] ?? "";
    if (word === "DATA") session.inData = true;
    socket.write(word === "DATA" ? "354 go on\r\n" : word === "QUIT" ? "221 bye\r\n" : "250 ok\r\n");
  }
}

function parse(to: string, raw: string): KeptMail {
  const [head = "", body = ""] = raw.split(/\r\n\r\n([\s\S]*)/);
  const text = /quoted-printable/i.test(head) ? unquoted(body) : body;
  const subject = /^subject: (.*)$/im.exec(head)?.[1] ?? "";
  return { to, subject, text, link: /https?:\S+/.exec(text)?.[0] ?? "" };
}

function unquoted(text: string): string {
  return text
    .replace(/=\r\n/g, "")
    .replace(/=([0-9A-F]{2})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}
