/** The sign-in page, and the pages to regain access. */
import { Button, ButtonLink, ErrorNote, Field, Note } from "../components";
import { AuthFrame, EmailField, NewPasswordField, withNext } from "./frame";
import type { Errors } from "./sign-up";

export function SignIn(props: {
  email: string;
  next: string;
  /** Other services to sign in with. */
  providers: { id: string; name: string }[];
  errors: Errors<"email" | "password">;
  /** The notice of the last action. */
  done?: string | undefined;
}) {
  const { email, next, providers, errors, done } = props;
  return (
    <AuthFrame
      title="Sign in"
      lead="Your Airtable bases as live, read-only Postgres databases."
      below={
        <>
          No account yet? <a href={withNext("/signup", next)}>Sign up</a>
        </>
      }
    >
      {done ? <Note tone="good">{done}</Note> : null}
      <form method="post" action="/sign-in" class="stack">
        <input type="hidden" name="next" value={next} />
        {errors.form ? <ErrorNote>{errors.form}</ErrorNote> : null}
        <EmailField value={email} error={errors.email} autofocus={email === ""} />
        <Field
          label="Password"
          name="password"
          type="password"
          autocomplete="current-password"
          error={errors.password}
          required
          autofocus={email !== ""}
        />
        <div class="actions spread">
          <Button kind="primary">Sign in</Button>
          <a class="small" href="/forgot-password">
            Forgot your password?
          </a>
        </div>
      </form>
      {providers.length > 0 ? (
        <div class="actions">
          {providers.map(({ id, name }) => (
            <ButtonLink key={id} href={withNext(`/sign-in/with/${id}`, next)}>
              Continue with {name}
            </ButtonLink>
          ))}
        </div>
      ) : null}
    </AuthFrame>
  );
}

export function ForgotPassword(props: { email: string; errors: Errors<"email"> }) {
  const { email, errors } = props;
  return (
    <AuthFrame
      title="Reset your password"
      lead="Enter your e-mail address, and we'll send you a link to choose a new password."
      below={<a href="/sign-in">Back to sign-in</a>}
    >
      <form method="post" action="/forgot-password" class="stack">
        {errors.form ? <ErrorNote>{errors.form}</ErrorNote> : null}
        <EmailField value={email} error={errors.email} autofocus />
        <Button kind="primary">Send link</Button>
      </form>
    </AuthFrame>
  );
}

/** @param props.token of the link that was opened */
export function ResetPassword(props: { token: string; errors: Errors<"password"> }) {
  const { token, errors } = props;
  return (
    <AuthFrame
      title="Choose a new password"
      lead="You'll be signed out on all devices and can sign in with the new password."
    >
      <form method="post" action="/reset-password" class="stack">
        <input type="hidden" name="token" value={token} />
        {errors.form ? (
          <ErrorNote>
            {errors.form} <a href="/forgot-password">Request a new link</a>
          </ErrorNote>
        ) : null}
        <NewPasswordField
          label="New password"
          hint="At least 8 characters."
          error={errors.password}
          autofocus
        />
        <Button kind="primary">Set password</Button>
      </form>
    </AuthFrame>
  );
}

/** For a link that was used, has expired or never existed. */
export function DeadResetLink() {
  return (
    <AuthFrame
      title="This link no longer works"
      lead="A link to choose a new password works once, and for one hour."
      below={<a href="/sign-in">Back to sign-in</a>}
    >
      <ButtonLink href="/forgot-password" kind="primary">
        Request a new link
      </ButtonLink>
    </AuthFrame>
  );
}

/** Requires a click, because programs that scan mail open every link in it. */
export function ConfirmAddress(props: { token: string; next: string; error: string | undefined }) {
  const { token, next, error } = props;
  return (
    <AuthFrame title="Confirm your address">
      <form method="post" action="/verify-email" class="stack">
        <input type="hidden" name="token" value={token} />
        <input type="hidden" name="next" value={next} />
        {error ? (
          <ErrorNote>
            {error} <a href={withNext("/sign-in", next)}>Sign in</a> to get one.
          </ErrorNote>
        ) : (
          <p>Confirm your e-mail address to finish setting up your account.</p>
        )}
        <Button kind="primary">Confirm and continue</Button>
      </form>
    </AuthFrame>
  );
}
