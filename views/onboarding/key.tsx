/** The second step: the API key for the source. */
import type { Draft } from "../../core/control/onboarding";
import type { Platform } from "../../core/source";
import { Button, ButtonLink, Field, NewTabLink, Note } from "../components";
import { enhanced, GoOn, StepFrame, stepPath } from "./frame";
import { TokenPicture } from "./token-picture";

interface KeyProps {
  draft: Draft;
  platform: Pick<Platform, "name" | "keyHelpUrl" | "keyScopes">;
  error?: string | undefined;
  /** The key that was refused: it stays in its field. */
  typed?: string | undefined;
}

export function KeyStep(props: KeyProps) {
  const { draft, platform } = props;
  return (
    <StepFrame
      draft={draft}
      step="key"
      title={`Your ${platform.name} API key`}
      lead="We store it encrypted and use it to read the base that you choose next."
    >
      {draft.reportsChanges === false && !props.error ? <NotLive {...props} /> : null}
      <div class="card stack">
        <h2>Where to find it</h2>
        <TokenPicture scopes={Object.values(platform.keyScopes ?? {})} />
        <ol class="list">
          <li>
            Open{" "}
            <NewTabLink href={platform.keyHelpUrl}>{platform.keyHelpUrl.replace("https://", "")}</NewTabLink>{" "}
            and create a personal access token.
          </li>
          {platform.keyScopes ? (
            <li>
              Select the scopes <code>{platform.keyScopes.records}</code> and{" "}
              <code>{platform.keyScopes.schema}</code>.
              {platform.keyScopes.changes ? (
                <>
                  {" "}
                  Also select <code>{platform.keyScopes.changes}</code> for live sync: {platform.name} reports
                  each change, and it is in the database within a second or two. Without it we poll every
                  table, which is slower and uses more calls.
                </>
              ) : null}
            </li>
          ) : null}
          <li>Under “Access”, add the base or the whole workspace.</li>
          <li>Copy the token and paste it here.</li>
        </ol>
        <KeyForm {...props} />
      </div>
    </StepFrame>
  );
}

/** What the missing scope means, before the user goes on. */
function NotLive({ draft, platform }: KeyProps) {
  const scope = platform.keyScopes?.changes;
  return (
    <Note tone="warn" title="This key works, but not for live sync">
      <div class="stack">
        <p>
          It lacks the scope <code>{scope}</code>. Without it, {platform.name} does not report changes to us.
          We then read every table again and again: a change reaches the database after a full sync instead of
          a second or two, and syncing uses far more calls.
        </p>
        <p>
          Add the scope to the token under{" "}
          <NewTabLink href={platform.keyHelpUrl}>{platform.keyHelpUrl.replace("https://", "")}</NewTabLink>.
          The token itself stays the same.
        </p>
        <div class="actions">
          <form method="post" action={stepPath(draft, "key")}>
            <input type="hidden" name="recheck" value="on" />
            <Button kind="primary">I added it: check again</Button>
          </form>
          <ButtonLink href={stepPath(draft, "base")}>Continue without live sync</ButtonLink>
        </div>
      </div>
    </Note>
  );
}

/** @param props.error of the key that was just checked */
export function KeyForm({ draft, platform, error, typed }: KeyProps) {
  return (
    <form {...enhanced(stepPath(draft, "key"))} class="stack">
      <Field
        label="API key"
        name="key"
        type="password"
        spellcheck={false}
        maxLength={1000}
        hint={
          draft.hasKey
            ? "Leave this empty to continue with the saved key."
            : "It begins with “pat”. We check it with Airtable immediately."
        }
        error={error}
        value={typed}
        required={!draft.hasKey}
        autofocus
      />
      {error ? (
        <p class="small">
          <NewTabLink href={platform.keyHelpUrl}>Open your tokens at {platform.name}</NewTabLink>
        </p>
      ) : null}
      <GoOn text="Check key" busy="Checking the key…" isSecondary={draft.reportsChanges === false} />
    </form>
  );
}
