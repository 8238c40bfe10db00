/** The user's second factor: turns it on with an authenticator app, shows backup codes once, turns it off. */
import { Badge, Button, Card, CopyField, Field, Form, Note } from "../components";
import { QrCode } from "../components/qr-code";
import { AccountFrame } from "./frame";

const PATH = "/account/sign-in/two-factor";

/** Far more than the library's, which have an address of at most 254 characters; a QR code holds 2953. */
const MAX_URI_LENGTH = 1000;

interface Setup {
  uri: string;
  codes: string[];
}

export interface TwoFactorPageProps {
  isOn: boolean;
  /** Just created: the app must be set up, and a code confirms it. */
  setup?: Setup;
  /** New backup codes; empty: none. */
  codes?: string[];
  errors: { password?: string; code?: string; codes?: ProofErrors; disable?: ProofErrors };
}

interface ProofErrors {
  password?: string;
  code?: string;
}

export function TwoFactorPage({ isOn, setup, codes = [], errors }: TwoFactorPageProps) {
  return (
    <AccountFrame tab="/account">
      {codes.length > 0 ? (
        <Note tone="good" title="Your new backup codes">
          <BackupCodes codes={codes} />
        </Note>
      ) : null}
      {setup && !isOn ? <SetUp setup={setup} error={errors.code} /> : null}
      {!setup && !isOn ? <TurnOn error={errors.password} /> : null}
      {isOn ? <On errors={errors} /> : null}
    </AccountFrame>
  );
}

function TurnOn({ error }: { error: string | undefined }) {
  return (
    <Card id="two-factor" title="Two-factor authentication">
      <p class="muted">
        You will sign in with your password and a code from an authenticator app, such as 1Password or Google
        Authenticator.
      </p>
      <Form action={PATH} class="stack rows">
        <Password error={error} />
        <Button kind="primary">Set up</Button>
      </Form>
    </Card>
  );
}

function SetUp({ setup, error }: { setup: Setup; error: string | undefined }) {
  return (
    <Card id="two-factor" title="Set up your authenticator app">
      <ol class="stack instructions">
        <li>
          <p>
            {isSafe(setup.uri) ? (
              <>
                Scan the code with your app, <a href={setup.uri}>open the app on this device</a>, or enter the
                key.
              </>
            ) : (
              "Enter this key in your app."
            )}
          </p>
          {isSafe(setup.uri) ? <QrCode text={setup.uri} label="QR code for your authenticator app" /> : null}
          <CopyField id="totp-secret" label="Key" value={secretOf(setup.uri)} />
        </li>
        <li>
          <p>Save these backup codes. Each works once, if you lose the app. They will not be shown again.</p>
          <BackupCodes codes={setup.codes} />
        </li>
        <li>
          <Form action={`${PATH}/confirm`} class="stack rows">
            <input type="hidden" name="uri" value={setup.uri} />
            <input type="hidden" name="codes" value={setup.codes.join(" ")} />
            <Field
              label="Code"
              name="code"
              inputMode="numeric"
              autocomplete="one-time-code"
              hint="The six digits that the app shows now."
              error={error}
              maxLength={10}
              required
            />
            <Button kind="primary">Turn on</Button>
          </Form>
        </li>
      </ol>
    </Card>
  );
}

function On({ errors }: Pick<TwoFactorPageProps, "errors">) {
  return (
    <>
      <Card id="two-factor" title="Two-factor authentication">
        <p>
          <Badge tone="green">On</Badge> Sign-ins need your password and a code of your app.
        </p>
        <Form action={`${PATH}/codes`} class="stack rows">
          <Proof id="codes" errors={errors.codes} hint="The previous backup codes stop working." />
          <Button>Create new backup codes</Button>
        </Form>
      </Card>
      <Card id="disable" title="Turn off">
        <Form action={`${PATH}/disable`} class="stack rows">
          <Proof id="disable" errors={errors.disable} hint="Sign-ins then need only your password." />
          <Button kind="danger">Turn off</Button>
        </Form>
      </Card>
    </>
  );
}

/** What a change needs, so that a stolen session or password alone does not end the protection. */
function Proof({ id, errors, hint }: { id: string; errors: ProofErrors | undefined; hint: string }) {
  return (
    <>
      <Password id={`${id}-password`} error={errors?.password} />
      <Field
        id={`${id}-code`}
        label="Code"
        name="code"
        autocomplete="one-time-code"
        hint={`Of your app, or a backup code. ${hint}`}
        error={errors?.code}
        maxLength={20}
        required
      />
    </>
  );
}

function Password(props: { id?: string; hint?: string; error: string | undefined }) {
  return (
    <Field
      {...props}
      label="Current password"
      name="password"
      type="password"
      autocomplete="current-password"
      required
    />
  );
}

function BackupCodes({ codes }: { codes: string[] }) {
  return <CopyField id="backup-codes" label="Backup codes" value={codes.join(" ")} />;
}

/** The address comes back with a form, so it is not trusted to be one of an app, or short. */
function isSafe(uri: string): boolean {
  return uri.startsWith("otpauth://totp/") && uri.length <= MAX_URI_LENGTH;
}

function secretOf(uri: string): string {
  return URL.parse(uri)?.searchParams.get("secret") ?? "";
}
