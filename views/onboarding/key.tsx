/** The second step: the API key for the source. */
import type { Draft } from "../../core/control/onboarding";
import type { Platform } from "../../core/source";
import { Field } from "../components";
import { enhanced, GoOn, StepFrame, stepPath } from "./frame";

export interface KeyProps {
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
      lead="It is kept encrypted, and used to read the base you choose next."
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
              Tick the scopes <code>{platform.keyScopes.records}</code> and{" "}
              <code>{platform.keyScopes.schema}</code>.
              {platform.keyScopes.changes ? (
                <>
                  {" "}
                  Tick <code>{platform.keyScopes.changes}</code> too, and the copy is live: {platform.name}{" "}
                  tells us what changes, and it is in SQL within a second or two. Without it all tables are
                  read over and over, which is slower and takes more calls.
                </>
              ) : null}
            </li>
          ) : null}
          <li>Under “Access” add the base, or the whole workspace.</li>
          <li>Copy the token, and paste it here.</li>
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
            ? "A key is kept already: leave this empty to go on with it."
            : "It begins with “pat”. We ask the source at once whether it works."
        }
        error={error}
        required={!draft.hasKey}
        autofocus
      />
      <GoOn text="Check the key" busy="Asking the source…" />
    </form>
  );
}
