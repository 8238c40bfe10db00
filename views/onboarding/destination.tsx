/** The fourth step: the destination of the copy. */
import type { ComponentChildren } from "preact";
import type { Draft } from "../../core/control/onboarding";
import {
  createdAt,
  type DatabaseCheck,
  type DatabaseContents,
  locationName,
  type Region,
} from "../../core/control/placement";
import { cutText } from "../../core/cut-text";
import { Button, ErrorNote, Field, SelectField, Toggle } from "../components";
import { counted } from "../format";
import { CheckResults } from "./check-results";
import { enhanced, GoOn, StepFrame, stepPath } from "./frame";

export type DestinationKind = "new" | "existing" | "external";

/** Typed or stored values. */
export interface DestinationForm {
  kind: DestinationKind;
  /** Of the new database. */
  region: string;
  databaseId: string;
  /** Of the existing database. */
  schema: string;
  url: string;
  /** Of the customer's own database. */
  externalSchema: string;
  acceptsPrivileges: boolean;
}

export interface DestinationProps {
  draft: Draft;
  databases: DatabaseContents[];
  /** Where a new database can be created. */
  regions: Region[];
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
      title="Where should we store the data?"
      lead="Each option is a standard Postgres database that works with any SQL client."
    >
      <DestinationFormView {...props} />
    </StepFrame>
  );
}

export function DestinationFormView({ draft, databases, regions, form, errors, results }: DestinationProps) {
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
          about={`For this base only, ${createdAt(regions.length === 1 ? regions[0]!.location : null)}. Right for most users.`}
        >
          {regions.length > 1 ? (
            <SelectField
              label="Region"
              name="region"
              options={regions.map(({ code, location }) => ({
                value: code,
                text: location === null ? "The operator's usual location" : locationName(location),
              }))}
              value={form.region}
              hint="Choose the one closest to your apps."
            />
          ) : null}
        </Place>
        <Place
          kind="existing"
          chosen={form.kind}
          isDisabled={databases.length === 0}
          name="One of your existing databases"
          about={
            databases.length === 0
              ? "You have no databases yet."
              : "Next to another base, in its own schema, so that you can join across bases."
          }
        >
          <SelectField
            label="Database"
            name="database"
            options={databases.map((database) => ({ value: database.id, text: contentsOf(database) }))}
            value={form.databaseId}
            error={errors.database}
          />
          <Field
            label="Schema"
            name="schema"
            value={form.schema}
            hint="Lowercase letters, digits and _."
            maxLength={40}
            error={errors.schema}
            spellcheck={false}
          />
        </Place>
        <Place
          kind="external"
          chosen={form.kind}
          name="Your own Postgres"
          about="Hosted by you. We only need a role that can create schemas."
        >
          <Field
            label="Connection URL"
            name="url"
            value={form.url}
            placeholder="postgres://role:password@db.example.com:5432/app?sslmode=require"
            hint={kept ? `Leave this empty to continue with ${kept}.` : undefined}
            maxLength={2000}
            error={errors.url}
            spellcheck={false}
          />
          <Field
            label="Schema"
            name="external_schema"
            value={form.externalSchema}
            hint="We create it if needed, plus a helper schema with _swap added to the name."
            maxLength={40}
            error={errors.externalSchema}
            spellcheck={false}
          />
          <Toggle
            label="Use this URL although its role has more rights than needed"
            name="accept_privileges"
            checked={form.acceptsPrivileges}
            hint="Needed for a superuser and similar roles. Every editor of this account can then read, change and delete everything on your server with this URL, and so can anyone who takes over Basetide."
          />
          {results ? <CheckResults results={results} /> : null}
          <Button name="test" value="on">
            Test connection
          </Button>
        </Place>
      </fieldset>
      <GoOn text="Continue" busy="Checking…" />
    </form>
  );
}

/** Names of databases that are shown in full; we name ours at random, and the first part tells them apart. */
const LONGEST_NAME = 12;
const SHOWN_BASES = 3;

/** `Acme CRM (bt_65e9…), 8 tables`. */
function contentsOf({ name, bases }: DatabaseContents): string {
  const short = name.length > LONGEST_NAME ? `${cutText(name, 7)}…` : name;
  if (bases.length === 0) return `${short}, empty`;
  const names = bases.slice(0, SHOWN_BASES).map((base) => base.name);
  const more = bases.length > SHOWN_BASES ? ` and ${bases.length - SHOWN_BASES} more` : "";
  const tables = bases.reduce((sum, base) => sum + base.tables, 0);
  return `${names.join(", ")}${more} (${short}), ${counted(tables, "table")}`;
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
