/**
 * Limits on e-mail. No mail is sent without a permit, and this module issues them: it counts by client network, by
 * account and by recipient, so that the service cannot be used to flood a mailbox.
 *
 * M1. Each reason has its own budget: exhausting one does not keep mails of another reason from arriving.
 * M2. Links for a new password last as long as the window of their limit: when a request is refused, a link that works
 *     is already in the mailbox. There is no limit per day, which would break this.
 * M3. Notices about the security of an account are counted by their kind, and only events inside the account cause
 * them.
 */
import { type AttemptCounter, type AttemptLimit, createAttemptCounter } from "./attempts";
import type { Context } from "./context";
import { BasetideError } from "./errors";

type MailReason =
  | "sign_up"
  | "reset"
  | "invitation"
  | "reset_notice"
  | "token_notice"
  | "sign_in_notice"
  | "alert";

interface MailLimit {
  most: number;
  window: string;
}

const HOUR = "1 hour";
const DAY = "1 day";

/** Mails of one reason to one address. */
const RECIPIENT_LIMITS: Record<MailReason, MailLimit[]> = {
  sign_up: [
    { most: 5, window: HOUR },
    { most: 20, window: DAY },
  ],
  reset: [{ most: 2, window: HOUR }],
  invitation: [
    { most: 5, window: HOUR },
    { most: 20, window: DAY },
  ],
  reset_notice: [{ most: 5, window: HOUR }],
  token_notice: [{ most: 5, window: HOUR }],
  sign_in_notice: [{ most: 5, window: HOUR }],
  alert: [
    { most: 20, window: HOUR },
    { most: 200, window: DAY },
  ],
};

/** Mails from an account to people of its choice. */
const ACCOUNT_LIMITS: Partial<Record<MailReason, MailLimit>> = {
  invitation: { most: 50, window: DAY },
  alert: { most: 500, window: DAY },
};

/** Mails requested from one client network. */
const CLIENT_LIMIT: MailLimit = { most: 20, window: HOUR };

export interface MailRequest {
  reason: MailReason;
  to: string;
  /** The account on whose behalf the mail is sent, if any. */
  accountId?: string;
  /** The network of the client that requested the mail; absent if no client did. */
  network?: string;
}

/** The right to send one mail. Only this module creates them. */
export class MailPermit {
  private constructor(
    readonly reason: MailReason,
    readonly to: string,
  ) {}

  /** @throws BasetideError `rate_limited` */
  static async take(
    counter: AttemptCounter,
    { reason, to, accountId, network }: MailRequest,
  ): Promise<MailPermit> {
    const recipient = to.trim().toLowerCase();
    // The recipient is last: a client or an account over its own limit uses up no other budget.
    const checks: [scope: string, limit: MailLimit | undefined, who: string | undefined][] = [
      ["client", CLIENT_LIMIT, network],
      [`${reason}-account`, ACCOUNT_LIMITS[reason], accountId],
      ...RECIPIENT_LIMITS[reason].map((limit) => [reason, limit, recipient] as [string, MailLimit, string]),
    ];
    for (const [scope, limit, who] of checks) {
      if (limit === undefined || who === undefined) continue;
      const waitMs = await counter.take(kindOf(scope, limit), who);
      if (waitMs > 0) throw tooManyMails(reason, waitMs);
    }
    return new MailPermit(reason, recipient);
  }
}

export interface MailPermits {
  /** @throws BasetideError `rate_limited` */
  take(request: MailRequest): Promise<MailPermit>;
  /** Resets the recipient's budget of a reason. */
  forgive(mail: Pick<MailRequest, "reason" | "to">): Promise<void>;
}

export function createMailPermits(ctx: Pick<Context, "config" | "db">): MailPermits {
  const counter = createAttemptCounter(ctx);
  return {
    take: (request) => MailPermit.take(counter, request),
    async forgive({ reason, to }) {
      for (const limit of RECIPIENT_LIMITS[reason]) {
        await counter.clear(kindOf(reason, limit), to.trim().toLowerCase());
      }
    },
  };
}

function kindOf(scope: string, { most, window }: MailLimit): AttemptLimit {
  return { kind: `mail-${scope}-${window === DAY ? "day" : "hour"}`, most, window };
}

function tooManyMails(reason: MailReason, waitMs: number): BasetideError {
  const seconds = Math.ceil(waitMs / 1000);
  const minutes = Math.ceil(seconds / 60);
  const remedy = reason === "reset" ? "Use the link in the last mail, or try" : "Try";
  return new BasetideError("rate_limited", `Too many mails. ${remedy} again in ${minutes} min.`, {
    details: { retryAfterSeconds: seconds },
  });
}
