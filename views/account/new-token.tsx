/** The form for a new API token: its name, its scopes, and when it expires. */
import { scopeLabels, scopes, type TokenScope } from "../../core/control/accounts";
import { Button, ErrorNote, Field, Form, FormPanel, SelectField, Toggle } from "../components";

/** As typed. */
export interface TokenFormValues {
  name: string;
  scopes: readonly TokenScope[];
  /** Days, or `never`. */
  expires: string;
}

export type TokenFormErrors = Partial<Record<"name" | "scopes", string>>;

const expiryOptions = [
  { value: "30", text: "After 30 days" },
  { value: "90", text: "After 90 days" },
  { value: "365", text: "After a year" },
  { value: "never", text: "Never" },
];

export function NewToken({ form, errors }: { form: TokenFormValues; errors: TokenFormErrors }) {
  return (
    <FormPanel id="new" action="/account/tokens" button="New token" isOpen={Object.keys(errors).length > 0}>
      <Form action="/account/tokens" class="stack rows">
        <Field
          label="Name"
          name="name"
          value={form.name}
          error={errors.name}
          hint="What it is for, such as “deploy script” or “Lina's laptop”."
          maxLength={100}
          autocomplete="off"
          required
        />
        <fieldset class="stack">
          <legend>Scopes</legend>
          {errors.scopes ? <ErrorNote>{errors.scopes}</ErrorNote> : null}
          {scopes.map((scope) => (
            <Toggle
              key={scope}
              name={scope}
              label={scopeLabels[scope].label}
              hint={scopeLabels[scope].hint}
              checked={form.scopes.includes(scope)}
            />
          ))}
        </fieldset>
        <SelectField
          label="Expires"
          name="expires"
          value={form.expires}
          options={expiryOptions}
          hint="An expired token no longer works. Replace it before."
        />
        <Button>Create token</Button>
      </Form>
    </FormPanel>
  );
}
