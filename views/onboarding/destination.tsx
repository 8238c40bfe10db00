/** The fourth step: the destination of the copy. */
import type { ComponentChildren } from "preact";
import type { Draft } from "../../core/control/onboarding";
import type { Database, DatabaseCheck } from "../../core/control/placement";
import { Button, ErrorNote, Field, SelectField } from "../components";
import { CheckResults } from "./check-results";
import { enhanced, GoOn, StepFrame, stepPath } from "./frame";

export type DestinationKind = "new" | "existing" | "external";

/** Typed or stored values. */
export interface DestinationForm {
  kind: DestinationKind;
  databaseId: string;
  /** Of the existing database. */
  schema: string;
  url: string;
  /** Of the customer's own database. */
  externalSchema: string;
}

export interface DestinationProps {
  draft: Draft;
  databases: Pick<Database, "id" | "name">[];
  form: DestinationForm;
  errors: Partial<Record<"database" | "schema" | "url" | "externalSchema" | "form", string>>;
  /** Of a database that was just checked. */
  results?: DatabaseCheck[] | undefined;
}

export function DestinationStep(props: DestinationProps) {
  return (
    <StepFrame
      draft={props.draft}
      step="destination"
      title="Where should the copy live?"
      lead="In every case it is a plain Postgres database that any SQL client reads."
    >
      <DestinationFormView {...props} />
    </StepFrame>
  );
}

export function DestinationFormView({ draft, databases, form, errors, results }: DestinationProps) {
  const kept = draft.destination?.kind === "external" ? draft.destination.address : undefined;
  return (
    <form {...enhanced(stepPath(draft, "destination"))} class="card stack">
      {errors.form ? <ErrorNote>{errors.form}</ErrorNote> : null}
      <fieldset class="choices">
        <legend class="visually-hidden">Destination</legend>
        <Place
          kind="new"
          chosen={form.kind}
          name="A new database"
          about="Made and run by us. Right for most."
        />
        <Place
          kind="existing"
          chosen={form.kind}
          isDisabled={databases.length === 0}
          name="A database you have here"
          about={
            databases.length === 0
              ? "You have none yet."
              : "Next to another base, in a schema of its own: join across bases."
          }
        >
          <SelectField
            label="Database"
            name="database"
            options={databases.map(({ id, name }) => ({ value: id, text: name }))}
            value={form.databaseId}
            error={errors.database}
          />
          <Field
            label="Schema"
            name="schema"
            value={form.schema}
            hint="Lower-case letters, digits and _."
            maxLength={40}
            error={errors.schema}
            autocomplete="off"
            spellcheck={false}
          />
        </Place>
        <Place
          kind="external"
          chosen={form.kind}
          name="Your own Postgres"
          about="You host it; we need a role that may create schemas, nothing more."
        >
          <Field
            label="Connection URL"
            name="url"
            value={form.url}
            placeholder="postgres://role:password@db.example.com:5432/app?sslmode=require"
            hint={kept ? `${kept} is kept: leave this empty to go on with it.` : undefined}
            maxLength={2000}
            error={errors.url}
            autocomplete="off"
            spellcheck={false}
          />
          <Field
            label="Schema"
            name="external_schema"
            value={form.externalSchema}
            hint="Created if it is not there; a second one with _swap behind its name is ours."
            maxLength={40}
            error={errors.externalSchema}
            autocomplete="off"
            spellcheck={false}
          />
          {results ? <CheckResults results={results} /> : null}
          <Button name="test" value="on">
            Test the connection
          </Button>
        </Place>
      </fieldset>
      <GoOn text="Continue" busy="Looking at it…" />
    </form>
  );
}

function Place(props: {
  kind: DestinationKind;
  chosen: DestinationKind;
  name: string;
  about: string;
  isDisabled?: boolean;
  children?: ComponentChildren;
}) {
  const { kind, chosen, name, about, isDisabled = false, children } = props;
  return (
    <div class="choice">
      <input
        type="radio"
        name="kind"
        id={`kind-${kind}`}
        value={kind}
        checked={kind === chosen}
        disabled={isDisabled}
        required
      />
      <label for={`kind-${kind}`}>
        <span class="choice-name">{name}</span>
        <span class="muted small">{about}</span>
      </label>
      {children && !isDisabled ? <div class="choice-more stack">{children}</div> : null}
    </div>
  );
}
