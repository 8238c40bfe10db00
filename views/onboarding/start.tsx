/** The last step: all of it at a glance, and the button. */
import type { Draft } from "../../core/control";
import { ErrorNote } from "../components";
import { enhanced, GoOn, StepFrame, stepPath } from "./frame";

export interface StartProps {
  draft: Draft;
  platform: string;
  /** Name of an existing database. */
  database: string | undefined;
  error?: string | undefined;
}

export function StartStep(props: StartProps) {
  const { draft, platform, database } = props;
  return (
    <StepFrame
      draft={draft}
      step="start"
      title="Ready to sync"
      lead="The first copy of 10,000 records takes about half a minute; then it is kept up to date for good."
    >
      <div class="card stack">
        <dl class="facts">
          <dt>Platform</dt>
          <dd>{platform}</dd>
          <dt>Base</dt>
          <dd class="wrap">
            {draft.sourceBase?.name} <span class="muted small">{draft.sourceBase?.id}</span>
          </dd>
          <dt>Tables</dt>
          <dd>All of them</dd>
          <dt>Destination</dt>
          <dd class="wrap">{describe(draft, database)}</dd>
        </dl>
        <StartForm {...props} />
      </div>
    </StepFrame>
  );
}

export function StartForm({ draft, error }: StartProps) {
  return (
    <form {...enhanced(stepPath(draft, "start"))} class="stack">
      {error ? <ErrorNote title="It did not start">{error}</ErrorNote> : null}
      <GoOn text="Start syncing" busy="Making the database…" />
    </form>
  );
}

function describe({ destination }: Draft, database: string | undefined): string {
  if (destination?.kind === "existing") return `${database ?? "your database"}, schema ${destination.schema}`;
  if (destination?.kind === "external") return `${destination.address}, schema ${destination.schema}`;
  return "A new database, made and run by us";
}
