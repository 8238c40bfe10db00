/** The settings of a base, each with what it means; a new API key; and the end of it. */
import type { Base, BaseSettings } from "../../core/control";
import { Button, ButtonLink, Card, ErrorNote, Toggle } from "../components";
import { Field } from "../components/field";

/** A setting as a form sends it, and as people read it. */
export interface Setting {
  /** In forms and in the API. */
  name: "turbo" | "rapid" | "linked_records_as_text" | "lookups_as_text";
  key: Exclude<keyof BaseSettings, "paused">;
  label: string;
  hint: string;
}

const turbo: Setting = {
  name: "turbo",
  key: "turbo",
  label: "Turbo",
  hint: "Sync uses all 5 requests a second that the source allows instead of 3. For when you read from the database and write only through the proxy; leave it off where other integrations call the same base.",
};

const advanced: Setting[] = [
  {
    name: "linked_records_as_text",
    key: "linkedRecordsAsText",
    label: "Linked records as text",
    hint: "Columns of linked records become text with the first link instead of text[] with all of them. The tables concerned are rebuilt.",
  },
  {
    name: "lookups_as_text",
    key: "lookupsAsText",
    label: "Lookups as text",
    hint: "Lookup columns become text with the first value instead of text[] with all of them. The tables concerned are rebuilt.",
  },
  {
    name: "rapid",
    key: "rapid",
    label: "Rapid creates and updates",
    hint: "Creates and updates are shown within seconds; deletes and computed fields take longer: about 10 minutes for 30,000 records. For when slow deletes are fine and few computed fields are used.",
  },
];

export const allSettings = [turbo, ...advanced];

export function SettingsPage(props: { base: Base; keyError?: string | undefined }) {
  const { base, keyError } = props;
  const path = `/bases/${base.id}`;
  return (
    <>
      <Card id="speed" title="Speed">
        <SettingForm base={base} setting={turbo} />
      </Card>
      <Card id="advanced" title="Advanced">
        {advanced.map((setting) => (
          <SettingForm key={setting.name} base={base} setting={setting} />
        ))}
      </Card>
      <Card id="key" title="API key">
        <form method="post" action={`${path}/key`} class="stack narrow">
          <Field
            label="New API key"
            name="api_key"
            type="password"
            required
            autocomplete="off"
            error={keyError}
            hint="It is checked at the source before it takes the place of the old one. The old one is never shown."
          />
          <Button>Replace the key</Button>
        </form>
      </Card>
      <Card id="end" title="Delete">
        <p>
          The base in the source is not touched. The replica goes with everything in it, and the credentials.
        </p>
        <ButtonLink kind="danger" href={`${path}/delete`}>
          Delete this base…
        </ButtonLink>
      </Card>
    </>
  );
}

/** Sent at once where a script runs, by its button where none does. */
export function SettingForm({
  base,
  setting,
  error,
}: {
  base: Base;
  setting: Setting;
  error?: string | undefined;
}) {
  const { name, key, label, hint } = setting;
  const path = `/bases/${base.id}/settings/${name}`;
  return (
    <form method="post" action={path} id={`setting-${name}`} class="setting">
      <Toggle
        label={label}
        name="value"
        id={name}
        hint={hint}
        checked={base.settings[key]}
        hx-post={path}
        hx-trigger="change"
        hx-target="closest form"
        hx-swap="outerMorph"
      />
      <button type="submit" class="button small needs-no-script">
        Save<span class="visually-hidden"> {label}</span>
      </button>
      {error ? <ErrorNote>{error}</ErrorNote> : null}
    </form>
  );
}
