/** The second step of a sign-in: a code of the authenticator app, or a backup code. */
import { Button, Field } from "../components";
import { AuthFrame, withNext } from "./frame";

export function SignInCode({ next, error }: { next: string; error: string | undefined }) {
  return (
    <AuthFrame
      title="Enter a code"
      lead="Open your authenticator app, and enter the code that it shows."
      below={<a href={withNext("/sign-in", next)}>Back to sign-in</a>}
    >
      <form method="post" action="/sign-in/code" class="stack">
        <input type="hidden" name="next" value={next} />
        <Field
          label="Code"
          name="code"
          autocomplete="one-time-code"
          hint="Lost the app? Enter one of your backup codes."
          error={error}
          maxLength={40}
          spellcheck={false}
          required
          autofocus
        />
        <Button kind="primary">Sign in</Button>
      </form>
    </AuthFrame>
  );
}
