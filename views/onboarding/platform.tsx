/** The first step: the choice of the platform. */
import type { Draft } from "../../core/control/onboarding";
import { Note } from "../components";
import { currentStep, StepFrame, stepPath } from "./frame";

export function PlatformStep(props: {
  platforms: { id: string; name: string; summary: string }[];
  /** An unfinished draft. */
  latest: Draft | null;
}) {
  const { platforms, latest } = props;
  return (
    <StepFrame draft={null} step="platform" title="What do you want to sync?">
      {latest ? (
        <Note title="You have started to connect a base">
          <a href={stepPath(latest, currentStep(latest))}>
            {latest.sourceBase ? (
              <>
                Continue connecting <bdi>{latest.sourceBase.name}</bdi>
              </>
            ) : (
              "Continue with the key that you entered"
            )}
          </a>
        </Note>
      ) : null}
      <form method="post" action="/new" class="card tight">
        {platforms.map(({ id, name, summary }) => (
          <button key={id} type="submit" name="platform" value={id} class="choice-button">
            <span class="choice-name">{name}</span>
            <span class="muted small">{summary}</span>
          </button>
        ))}
      </form>
    </StepFrame>
  );
}
