/** The form of one setting, by its type, and the parsing of its input. */
import {
  type AskedIndex,
  type Base,
  MOST_INDEXES,
  retypingSettings,
  type Setting,
} from "../../core/control/bases";
import { BasetideError } from "../../core/errors";
import { Button, Field, Form, Toggle, useMay } from "../components";

/** The rejected input for a setting, and the reason. */
export interface RefusedSetting {
  name: string;
  written: string;
  error: string;
}

interface FormProps {
  base: Base;
  setting: Setting;
  refused?: RefusedSetting | undefined;
  /** The form is sent along with another one, whose change affects it. */
  isNews?: boolean;
}

/** A reader who may not change the setting sees it, disabled. */
export function SettingForm(props: FormProps) {
  if (props.setting.type === "boolean") return <ToggleForm {...props} />;
  const { base, setting, refused } = props;
  const mine = refused?.name === setting.name ? refused : undefined;
  const path = pathOf(base, setting);
  const mayChange = useMay()("POST", path);
  const field = (
    <Field
      label={setting.label}
      name="value"
      id={setting.name}
      value={mine?.written ?? writtenValue(base, setting)}
      error={mine?.error}
      {...explained(setting)}
      disabled={!mayChange}
      type="number"
      inputMode="numeric"
      required
    />
  );
  if (!mayChange) return <div class="rows">{field}</div>;
  return (
    <Form action={path} class="rows one-line">
      {field}
      <Button>
        Save<span class="visually-hidden"> {setting.label}</span>
      </Button>
    </Form>
  );
}

/** The first sentence of its text in sight, and the rest on demand. */
export function explained({ hint }: Pick<Setting, "hint">) {
  const end = hint.search(/\. [A-Z0-9`]/) + 1;
  return end === 0
    ? { hint: withCode(hint) }
    : { hint: withCode(hint.slice(0, end)), more: withCode(hint.slice(end + 1)) };
}

/** Sent at once if a script runs, else by its button. */
function ToggleForm({ base, setting, isNews }: FormProps) {
  const { name, key, label } = setting;
  const { hint, more } = explained(setting);
  const path = pathOf(base, setting);
  const mayChange = useMay()("POST", path);
  // A setting that retypes columns opens its confirmation, which sends the form; other settings are sent at once.
  const asks = retypingSettings.some((one) => one === key);
  const sends = asks
    ? { "hx-get": path, "hx-target": "#dialog", "hx-swap": "innerHTML" }
    : { "hx-post": path, "hx-target": "closest form", "hx-swap": "outerMorph" };
  const toggle = (
    <Toggle
      label={label}
      name="value"
      id={name}
      hint={
        <>
          {hint}
          {name === "live" && base.settings.rapid ? (
            <strong> Rapid mode is on and replaces it.</strong>
          ) : null}
        </>
      }
      more={more}
      checked={base.settings[key] === true}
      {...(mayChange ? { "hx-trigger": "change", ...sends } : { disabled: true })}
    />
  );
  const common = {
    id: `setting-${name}`,
    class: "setting rows",
    "hx-swap-oob": isNews ? "outerMorph" : undefined,
  };
  if (!mayChange) return <div {...common}>{toggle}</div>;
  return (
    <form {...common} method={asks ? "get" : "post"} action={path} data-asks={asks ? true : undefined}>
      {toggle}
      <button type="submit" class="button small needs-no-script">
        Save<span class="visually-hidden"> {label}</span>
      </button>
    </form>
  );
}

/** @throws BasetideError `invalid_request` that names the expected value */
export function readSetting(setting: Setting, written: string): boolean | number | AskedIndex[] {
  if (setting.type === "boolean") return written === "on";
  if (setting.type === "indexes") return readIndexes(written);
  if (setting.type === "names" || setting.type === "fields")
    throw new BasetideError("not_found", "This setting has a page of its own");
  const { minimum, maximum, unit } = setting;
  const value = Number(written);
  if (written !== "" && Number.isInteger(value) && value >= minimum && value <= maximum) return value;
  throw new BasetideError("invalid_request", `Enter a whole number of ${unit} from ${minimum} to ${maximum}`);
}

function writtenValue({ settings }: Base, { key }: Setting): string {
  return String(settings[key]);
}

function pathOf(base: Base, setting: Setting): string {
  return `/bases/${base.id}/settings/${setting.name}`;
}

function withCode(text: string) {
  return text.split("`").map((part, index) => (index % 2 === 0 ? part : <code key={part}>{part}</code>));
}

export function indexLines(indexes: readonly AskedIndex[]): string {
  return indexes
    .map(({ table, column, kind }) => `${table}.${column}${kind === "trigram" ? " trigram" : ""}`)
    .join("\n");
}

/** @throws BasetideError `invalid_request` that names the invalid line */
function readIndexes(written: string): AskedIndex[] {
  const lines = written
    .split("\n")
    .map((text) => text.trim())
    .filter((text) => text !== "");
  if (lines.length > MOST_INDEXES) {
    throw new BasetideError("invalid_request", `At most ${MOST_INDEXES} indexes are allowed`);
  }
  return lines.map((text) => {
    const [, table, column, kind] = text.match(/^([^.\s]+)\.([^.\s]+)(?:\s+(trigram))?$/) ?? [];
    if (!table || !column) {
      throw new BasetideError(
        "invalid_request",
        `Write “${text}” as table.column, or table.column trigram, one per line`,
      );
    }
    return { table, column, kind: kind === "trigram" ? "trigram" : "default" };
  });
}
