/** The sign-up page: an address and a password. */
import { Button, ErrorNote, Note } from "../components";
import { AuthFrame, EmailField, NewPasswordField, withNext } from "./frame";

/** The errors of a form, by field; `form` is about all of it. */
export type Errors<Name extends string> = Partial<Record<Name | "form", string>>;

export function SignUp(props: { email: string; next: string; errors: Errors<"email" | "password"> }) {
  const { email, next, errors } = props;
  return (
    <AuthFrame
      title="Create your account"
      lead="Then connect a base. Each table can be queried once it has been read: 10,000 records take about 35 s."
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
          hint="At least 8 characters. Several unrelated words make a strong password."
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
      title="Check your inbox"
      below={
        <>
          No mail? Check your spam folder, or <a href={isReset ? "/forgot-password" : "/signup"}>try again</a>
          .
        </>
      }
    >
      <p class="wrap">
        {isReset ? (
          <>
            If <strong>{email}</strong> has an account, we have sent it a link to choose a new password.
          </>
        ) : (
          <>
            We have sent an e-mail to <strong>{email}</strong>. Open the link in it to continue.
          </>
        )}
      </p>
      {props.isMailConfigured ? null : (
        <Note tone="warn" title="No mail server is configured">
          Ask the operator of this service for a link. In development, the link is in the console's log.
        </Note>
      )}
    </AuthFrame>
  );
}
