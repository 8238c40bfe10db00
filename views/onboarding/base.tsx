/** The third step: the choice of one of the key's bases. */
import type { Choice, Draft } from "../../core/control/onboarding";
import { Badge, ButtonLink, Empty, ErrorNote, NewTabLink } from "../components";
import { counted } from "../format";
import { enhanced, GoOn, StepFrame, stepPath } from "./frame";

/** Bases that are shown; beyond that, the user searches. */
const MAX_SHOWN = 100;

/** The role of the key's user in a base, in the platform's words. */
const roleNames: Record<string, string> = {
  create: "Creator",
  edit: "Editor",
  comment: "Commenter",
  read: "Read only",
};
const LIVE_PERMISSION = "create";

interface ChoicesProps {
  draft: Draft;
  /** Those that match `query`. */
  choices: Choice[];
  /** The id of the chosen one, also if it was refused. */
  chosen: string | undefined;
  query: string;
  /** The page where users change their keys. */
  keyHelpUrl: string;
  error?: string | undefined;
  /** Whether another key, or other rights of it, would help. */
  isKeyError?: boolean;
}

export function BaseStep(props: ChoicesProps & { total: number }) {
  const { draft, total, query } = props;
  return (
    <StepFrame
      draft={draft}
      step="base"
      title="Which base?"
      lead={
        <>
          {draft.keyOwner ? (
            <>
              Token of <span class="wrap">{draft.keyOwner}</span>, with access to{" "}
            </>
          ) : (
            "Your key has access to "
          )}
          {counted(total, "base")}. We sync all tables of the base that you choose.
        </>
      }
    >
      <div class="card stack">
        {total > 5 ? <Search draft={draft} query={query} /> : null}
        <ChoiceForm {...props} />
      </div>
      <p class="muted small">
        Missing a base? Give the token access to it, then{" "}
        <a href={stepPath(draft, "key")}>check the key again</a>.
      </p>
    </StepFrame>
  );
}

function Search({ draft, query }: { draft: Draft; query: string }) {
  const path = stepPath(draft, "base");
  return (
    <search>
      <form method="get" action={path} class="find">
        <label for="q" class="visually-hidden">
          Search by name
        </label>
        <input
          id="q"
          name="q"
          type="search"
          value={query}
          placeholder="Search by name"
          autocomplete="off"
          hx-get={path}
          hx-trigger="input changed delay:150ms, search"
          hx-target="#choices"
          hx-swap="outerHTML"
        />
        <button type="submit" class="button needs-no-script">
          Search
        </button>
      </form>
    </search>
  );
}

export function ChoiceForm(props: ChoicesProps) {
  const { draft, choices, chosen, query, keyHelpUrl, error, isKeyError = false } = props;
  // The chosen one is always among those that are shown.
  const isLate = choices.findIndex(({ id }) => id === chosen) >= MAX_SHOWN;
  const shown = isLate
    ? choices.toSorted((a, b) => Number(b.id === chosen) - Number(a.id === chosen))
    : choices;
  return (
    <form {...enhanced(stepPath(draft, "base"))} id="choices" class="stack">
      <input type="hidden" name="q" value={query} />
      {error ? <ChoiceError {...{ draft, keyHelpUrl, error, isKeyError }} /> : null}
      {choices.length === 0 ? (
        <Empty title={`No base matches “${query}”`} />
      ) : (
        <fieldset class="choices">
          <legend class="visually-hidden">Bases</legend>
          {shown.slice(0, MAX_SHOWN).map((choice) => (
            <ChoiceRow key={choice.id} choice={choice} isChosen={choice.id === chosen} />
          ))}
        </fieldset>
      )}
      {choices.length > MAX_SHOWN ? (
        <p class="muted small">
          {counted(choices.length - MAX_SHOWN, "more base")}: search by name to find yours.
        </p>
      ) : null}
      {shown.some(({ permission }) => permission !== LIVE_PERMISSION) ? (
        <p class="muted small">
          Live sync needs a token of a creator. Other bases are read again and again instead.
        </p>
      ) : null}
      {choices.length > 0 ? <GoOn text="Continue" busy="Reading the first records…" /> : null}
    </form>
  );
}

/** In place of the bases, if they could not be listed. */
export function NoChoices(props: ErrorProps) {
  return (
    <div id="choices" class="stack">
      <ChoiceError {...props} />
      <ButtonLink href={stepPath(props.draft, "base")} kind="primary">
        Try again
      </ButtonLink>
    </div>
  );
}

export function NoChoicesStep(props: ErrorProps) {
  return (
    <StepFrame draft={props.draft} step="base" title="Which base?">
      <div class="card stack">
        <NoChoices {...props} />
      </div>
    </StepFrame>
  );
}

type ErrorProps = Pick<ChoicesProps, "draft" | "keyHelpUrl" | "isKeyError"> & { error: string };

function ChoiceError({ draft, keyHelpUrl, error, isKeyError }: ErrorProps) {
  return (
    <ErrorNote>
      <p>{error}</p>
      {isKeyError ? (
        <p>
          <NewTabLink href={keyHelpUrl}>Change the token</NewTabLink> and continue here, or{" "}
          <a href={stepPath(draft, "key")}>enter another key</a>.
        </p>
      ) : null}
    </ErrorNote>
  );
}

function ChoiceRow({ choice, isChosen }: { choice: Choice; isChosen: boolean }) {
  return (
    <div class="choice">
      <input
        type="radio"
        name="base"
        id={choice.id}
        value={choice.id}
        checked={isChosen}
        disabled={choice.connectedAs !== null}
        required
      />
      <label for={choice.id}>
        <span class="choice-name">{choice.name}</span>
        <span class="muted small wrap">
          {roleNames[choice.permission] ?? choice.permission} · {choice.id}
        </span>
      </label>
      {choice.connectedAs ? (
        <a class="choice-end" href={`/bases/${choice.connectedAs}`}>
          <Badge>Connected</Badge>
          <span class="visually-hidden"> {choice.name}</span>
        </a>
      ) : null}
    </div>
  );
}
