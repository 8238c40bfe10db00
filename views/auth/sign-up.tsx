/** The sign-up page: an address and a password. */
import { Button, ErrorNote, Note } from "../components";
import { EmailField, NewPasswordField } from "./fields";
import { AuthFrame, withNext } from "./frame";

/** The errors of a form, by field; `form` is about all of it. */
export type Errors<Name extends string> = Partial<Record<Name | "form", string>>;

export function SignUp(props: { email: string; next: string; errors: Errors<"email" | "password"> }) {
  const { email, next, errors } = props;
  return (
    <AuthFrame
      title="Create your account"
      lead="Then connect a base: its tables are in Postgres a few seconds later."
      below={
        <>
          Already have an account? <a href={withNext("/sign-in", next)}>Sign in</a>
        </>
      }
    >
      <form method="post" action="/signup" class="stack">
        <input type="hidden" name="next" value={next} />
        {errors.form ? <ErrorNote>{errors.form}</ErrorNote> : null}
        <EmailField value={email} error={errors.email} autofocus={email === ""} />
        <NewPasswordField
          hint="At least 8 characters; a few words are better than one with digits in it."
          error={errors.password}
        />
        <Button kind="primary">Create account</Button>
      </form>
    </AuthFrame>
  );
}

/** After a sign-up or a reset: the same whether the address has an account or not. */
export function CheckMail(props: { email: string; isReset?: boolean; isMailConfigured: boolean }) {
  const { email, isReset } = props;
  return (
    <AuthFrame
      title="Look into your mail"
      below={
        <>
          No mail? Look for it among spam, or <a href={isReset ? "/forgot-password" : "/signup"}>try again</a>
          .
        </>
      }
    >
      <p class="wrap">
        {isReset ? (
          <>
            If <strong>{email}</strong> has an account, a link to choose a new password is on its way there.
          </>
        ) : (
          <>
            We have sent a mail to <strong>{email}</strong>. Open the link in it to go on.
          </>
        )}
      </p>
      {props.isMailConfigured ? null : (
        <Note tone="warn" title="No mail server is set up">
          Ask the operator of this service for a link. During development, the link is in the console's log.
        </Note>
      )}
    </AuthFrame>
  );
}
