/** The second step: the API key for the source. */
import type { Draft } from "../../core/control/onboarding";
import type { Platform } from "../../core/source";
import { Field } from "../components";
import { enhanced, GoOn, StepFrame, stepPath } from "./frame";

interface KeyProps {
  draft: Draft;
  platform: Pick<Platform, "name" | "keyHelpUrl" | "keyScopes">;
  error?: string | undefined;
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
      <div class="card stack">
        <h2>Where to find it</h2>
        <ol class="list">
          <li>
            Open{" "}
            <a href={platform.keyHelpUrl} target="_blank" rel="noreferrer">
              {platform.keyHelpUrl.replace("https://", "")}
              <span class="visually-hidden"> (opens in a new tab)</span>
            </a>{" "}
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

/** @param props.error of the key that was just checked */
export function KeyForm({ draft, error }: KeyProps) {
  return (
    <form {...enhanced(stepPath(draft, "key"))} class="stack">
      <Field
        label="API key"
        name="key"
        type="password"
        autocomplete="off"
        spellcheck={false}
        maxLength={1000}
        hint={
          draft.hasKey
            ? "Leave this empty to continue with the saved key."
            : "It begins with “pat”. We check it with Airtable immediately."
        }
        error={error}
        required={!draft.hasKey}
        autofocus
      />
      <GoOn text="Check key" busy="Checking the key…" />
    </form>
  );
}
