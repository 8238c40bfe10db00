/** The user's password and sessions. */
import type { CurrentUser, Session } from "../../core/control/accounts";
import type { Errors } from "../auth/sign-up";
import { Badge, Button, ButtonLink, Card, ErrorNote, Field, Table } from "../components";
import { Ago } from "../components/ago";
import { AccountFrame } from "./frame";

export interface SignInSettingsProps {
  currentUser: CurrentUser;
  sessions: Session[];
  now: Date;
  errors: Errors<"current" | "password">;
}

export function SignInSettings({ currentUser, sessions, now, errors }: SignInSettingsProps) {
  return (
    <AccountFrame currentUser={currentUser} tab="/account">
      <Card id="sessions" title="Active sessions" actions={<EndOthers count={sessions.length - 1} />}>
        <Table
          caption="Your sessions"
          head={[
            { text: "Browser" },
            { text: "IP address" },
            { text: "Signed in" },
            { text: "Action", isHidden: true },
          ]}
        >
          {sessions.map((session) => (
            <tr key={session.id}>
              <th scope="row">
                {browserOf(session.userAgent)}{" "}
                {session.id === currentUser.sessionId ? <Badge tone="green">This session</Badge> : null}
              </th>
              <td>{addressOf(session.ipAddress)}</td>
              <td class="nowrap">
                <Ago at={session.createdAt} now={now} />
              </td>
              <td class="number">
                {session.id === currentUser.sessionId ? null : (
                  <form method="post" action={`/account/sessions/${session.id}/revoke`}>
                    <Button kind="quiet" isSmall>
                      Sign out<span class="visually-hidden"> {browserOf(session.userAgent)}</span>
                    </Button>
                  </form>
                )}
              </td>
            </tr>
          ))}
        </Table>
      </Card>
      <Card id="change-password" title="Password">
        <form method="post" action="/account/password" class="stack rows">
          {errors.form ? <ErrorNote>{errors.form}</ErrorNote> : null}
          <input type="hidden" name="username" value={currentUser.email} autocomplete="username" />
          <Field
            label="Current password"
            name="current"
            type="password"
            autocomplete="current-password"
            error={errors.current}
            required
          />
          <Field
            label="New password"
            name="password"
            type="password"
            autocomplete="new-password"
            hint="At least 8 characters. You will be signed out on all other devices."
            error={errors.password}
            minLength={8}
            required
          />
          <Button>Change password</Button>
        </form>
      </Card>
      <Card id="two-factor" title="Two-factor authentication">
        <p class="muted">Protects your account with a code of an authenticator app, besides your password.</p>
        <div class="actions">
          <ButtonLink href="/account/sign-in/two-factor">Manage</ButtonLink>
        </div>
      </Card>
    </AccountFrame>
  );
}

function EndOthers({ count }: { count: number }) {
  if (count < 1) return null;
  return (
    <form method="post" action="/account/sessions/revoke-others">
      <Button isSmall>Sign out all other sessions</Button>
    </form>
  );
}

/** Most specific first: nearly all browsers also contain "Safari". */
const BROWSERS = [
  ["Edg", "Edge"],
  ["OPR", "Opera"],
  ["Firefox", "Firefox"],
  ["FxiOS", "Firefox"],
  ["Chrome", "Chrome"],
  ["CriOS", "Chrome"],
  ["Safari", "Safari"],
] as const;
const SYSTEMS = ["Windows", "Android", "iPhone", "iPad", "Mac OS X", "Linux"];

/** `Firefox on Linux`: enough to recognize one's own browser. */
function browserOf(userAgent: string | null): string {
  if (!userAgent) return "Unknown browser";
  const browser =
    BROWSERS.find(([mark]) => userAgent.includes(`${mark}/`))?.[1] ?? userAgent.split(/[/ ]/)[0];
  const system = SYSTEMS.find((mark) => userAgent.includes(mark))?.replace("Mac OS X", "macOS");
  return system ? `${browser} on ${system}` : `${browser}`;
}

/** Shows only the network of an IPv6 address: its last half changes by itself. */
function addressOf(address: string | null): string {
  if (!address) return "unknown";
  const host = address.includes(":") ? URL.parse(`http://[${address}]`)?.hostname.slice(1, -1) : undefined;
  return host ? `${host}/64` : address;
}
