/** The user's password and sessions. */
import type { CurrentUser, Session } from "../../core/control/accounts";
import type { Errors } from "../auth/sign-up";
import {
  Ago,
  Badge,
  Button,
  ButtonLink,
  Card,
  ErrorNote,
  Field,
  Form,
  FormPanel,
  Table,
} from "../components";
import { AccountFrame } from "./frame";

interface SignInService {
  id: string;
  name: string;
  isLinked: boolean;
}

export interface SignInSettingsProps {
  currentUser: CurrentUser;
  sessions: Session[];
  /** Those that the operator has configured; empty: none. */
  services: SignInService[];
  hasTwoFactor: boolean;
  now: Date;
  errors: Errors<"current" | "password">;
}

export function SignInSettings(props: SignInSettingsProps) {
  const { currentUser, sessions, services, hasTwoFactor, now, errors } = props;
  return (
    <AccountFrame tab="/account">
      <Card id="sessions" title="Active sessions" actions={<EndOthers count={sessions.length - 1} />}>
        <Table
          caption="Your sessions"
          rows={sessions}
          columns={(column) => [
            column({ text: "Browser", isHead: true }, (session) => (
              <>
                {browserOf(session.userAgent)}{" "}
                {session.id === currentUser.sessionId ? <Badge tone="green">This session</Badge> : null}
              </>
            )),
            column("IP address", (session) => addressOf(session.ipAddress)),
            column({ text: "Signed in", class: "nowrap" }, (session) => (
              <Ago at={session.createdAt} now={now} />
            )),
            column({ text: "Action", isHidden: true, class: "number" }, (session) =>
              session.id === currentUser.sessionId ? null : (
                <Form action={`/account/sessions/${session.id}/revoke`}>
                  <Button kind="quiet" isSmall>
                    Sign out<span class="visually-hidden"> {browserOf(session.userAgent)}</span>
                  </Button>
                </Form>
              ),
            ),
          ]}
        />
      </Card>
      <Card id="password-card" title="Password">
        <FormPanel
          id="change-password"
          action="/account/password"
          button="Change your password"
          isOpen={Object.keys(errors).length > 0}
        >
          <Form action="/account/password" class="stack rows">
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
              hint="At least 8 characters."
              error={errors.password}
              minLength={8}
              required
            />
            <Button>Change password</Button>
          </Form>
        </FormPanel>
        <p class="muted">A new password signs you out on all other devices.</p>
      </Card>
      <Card
        id="two-factor"
        title="Two-factor authentication"
        actions={
          <ButtonLink href="/account/sign-in/two-factor">{hasTwoFactor ? "Manage" : "Set up"}</ButtonLink>
        }
      >
        <p>
          {hasTwoFactor ? (
            <>
              <Badge tone="green">On</Badge> Sign-ins need your password and a code of your app.
            </>
          ) : (
            <span class="muted">Require a code from an authenticator app in addition to your password.</span>
          )}
        </p>
      </Card>
      {services.length > 0 ? <Services services={services} hasTwoFactor={hasTwoFactor} /> : null}
    </AccountFrame>
  );
}

function Services({ services, hasTwoFactor }: Pick<SignInSettingsProps, "services" | "hasTwoFactor">) {
  return (
    <Card id="services" title="Sign-in services">
      <p class="muted">
        {hasTwoFactor
          ? "They do not sign you in while two-factor authentication is on."
          : "A linked service signs you in without your password. Its address must be that of your account."}
      </p>
      <Table
        caption="Sign-in services"
        rows={services}
        columns={(column) => [
          column({ text: "Service", isHead: true }, ({ name, isLinked }) => (
            <>
              {name} {isLinked ? <Badge tone="green">Linked</Badge> : null}
            </>
          )),
          column({ text: "Action", isHidden: true, class: "number" }, ({ id, name, isLinked }) => (
            <ServiceAction id={id} name={name} isLinked={isLinked} mayLink={!hasTwoFactor} />
          )),
        ]}
      />
    </Card>
  );
}

function ServiceAction({ id, name, isLinked, mayLink }: SignInService & { mayLink: boolean }) {
  const path = `/account/sign-in/services/${id}`;
  const hidden = <span class="visually-hidden"> {name}</span>;
  if (isLinked) {
    return (
      <Form action={`${path}/unlink`}>
        <Button kind="quiet" isSmall>
          Unlink{hidden}
        </Button>
      </Form>
    );
  }
  if (!mayLink) return null;
  return (
    <ButtonLink href={`${path}/link`} kind="quiet" isSmall>
      Link{hidden}
    </ButtonLink>
  );
}

function EndOthers({ count }: { count: number }) {
  if (count < 1) return null;
  return (
    <Form action="/account/sessions/revoke-others">
      <Button isSmall>Sign out all other sessions</Button>
    </Form>
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
