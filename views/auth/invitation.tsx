/** An invitation, as its link shows it. */
import type { GivenRole } from "../../core/control/accounts";
import { Button, ButtonLink, ErrorNote } from "../components";
import { AuthFrame } from "./frame";

/** @param props.signedInAs the address of the current user; null when signed out */
export function InvitationView(props: {
  account: string;
  email: string;
  role: GivenRole;
  token: string;
  signedInAs: string | null;
}) {
  const { account, email, role, token, signedInAs } = props;
  const next = `/invitation?${new URLSearchParams({ token })}`;
  const query = new URLSearchParams({ next, email });
  return (
    <AuthFrame title="You have been invited">
      <p class="wrap">
        <strong>{account}</strong> has invited <strong>{email}</strong> to their account as{" "}
        {role === "editor"
          ? "an editor, to see its bases, connect new ones and change their settings."
          : "a viewer, to see its bases and their data."}
      </p>
      {signedInAs === null ? (
        <div class="actions">
          <ButtonLink kind="primary" href={`/signup?${query}`}>
            Sign up
          </ButtonLink>
          <ButtonLink href={`/sign-in?${query}`}>Sign in</ButtonLink>
        </div>
      ) : signedInAs === email ? (
        <form method="post" action="/invitation">
          <input type="hidden" name="token" value={token} />
          <Button kind="primary">Accept</Button>
        </form>
      ) : (
        <div class="stack">
          <ErrorNote title={`You are signed in as ${signedInAs}`}>
            Sign out, then open the link again as {email}.
          </ErrorNote>
          <form method="post" action="/sign-out">
            <Button>Sign out</Button>
          </form>
        </div>
      )}
    </AuthFrame>
  );
}
