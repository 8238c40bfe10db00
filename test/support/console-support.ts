/** Shared by the tests of the console's pages: an app with a readable mailbox, and signed-in users. */
import { consoleApp } from "../../apps/console/app";
import { createAuth } from "../../apps/console/auth/auth";
import type { DocumentNetwork } from "../../apps/console/auth/client-documents";
import type { Config } from "../../core/config";
import type { Mail } from "../../core/mail";
import { type ConsoleClient, consoleClient } from "./console-client";
import { type TestControl, testControl } from "./control-support";
import { isNotice } from "./notices";
import { until } from "./poll";

export const PASSWORD = "correct horse";

export interface TestConsole {
  control: TestControl;
  app: ReturnType<typeof consoleApp>;
  /** The next mail to `to`, and the path that its link leads to. Skips notices. */
  nextMail(to: string): Promise<Mail & { path: string }>;
  mails: Mail[];
  /** A browser on this console. */
  client(address?: string): ConsoleClient;
  /** A signed-in user with an account. */
  person(email?: string): Promise<ConsoleClient & { email: string; accountId: string; token: string }>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** @param options.config overrides the defaults; mail is delivered unless `hasMail` is false */
export async function testConsole(
  options: {
    config?: Partial<Config>;
    hasMail?: boolean;
    platforms?: TestControl["ctx"]["platforms"];
    /** How the documents of agents' clients are reached. */
    network?: DocumentNetwork;
  } = {},
): Promise<TestConsole> {
  const control = await testControl();
  const ctx = {
    ...control.ctx,
    config: { ...control.ctx.config, clientIpHeader: "x-client", ...options.config },
    platforms: options.platforms ?? control.ctx.platforms,
  };
  const mails: Mail[] = [];
  const unread = new Set<Mail>();
  const mailer = {
    isConfigured: options.hasMail ?? true,
    send: async (mail: Mail) => {
      mails.push(mail);
      if (!isNotice(mail)) unread.add(mail);
    },
  };
  const auth = createAuth(ctx, mailer, options.network);
  const app = consoleApp(ctx, auth);
  return {
    control: { ...control, ctx },
    app,
    mails,
    client: (address) => consoleClient(app, address),
    async nextMail(to) {
      const mail = await until(() => [...unread].find((one) => one.to === to), { what: `a mail to ${to}` });
      unread.delete(mail);
      const link = new URL(/https?:\S+/.exec(mail.text)![0]);
      return { ...mail, path: link.pathname + link.search };
    },
    async person(email = `${crypto.randomUUID()}@example.org`) {
      const account = await control.addAccount(email);
      const client = consoleClient(app);
      const { status } = await client.post("/sign-in", { email, password: PASSWORD });
      if (status !== 303) throw new Error(`signing in as ${email} answered ${status}`);
      return { ...client, email, accountId: account.id, token: account.token };
    },
    async [Symbol.asyncDispose]() {
      await auth.settled();
      await control[Symbol.asyncDispose]();
    },
  };
}
