/** Deletes a base: shows what is deleted and what stays, and asks for the base's name. */
import type { Base } from "../../core/control/bases";
import { Button, ButtonLink, Card, Field, Form } from "../components";

export function DeletePage(props: {
  base: Base;
  isHosted: boolean;
  error?: string | undefined;
  typed?: string;
}) {
  const { base, isHosted, error, typed } = props;
  return (
    <Card id="delete" title="Delete this base">
      <ul class="bullets">
        <li>
          Syncing stops. Writes through the proxy are still forwarded to Airtable, but no longer appear in a
          database.
        </li>
        {isHosted ? (
          <li>
            The schema <code>{base.database.schema}</code> is dropped with everything in it, including your
            own views and tables. If this is the last base in the database, the whole database is dropped.
          </li>
        ) : (
          <li>Your database is left unchanged, with all its rows.</li>
        )}
        <li>The base in Airtable is not changed.</li>
      </ul>
      <Form action={`/bases/${base.id}/delete`} class="stack narrow">
        <Field
          label="Type the base's name to delete it"
          name="name"
          required
          spellcheck={false}
          value={typed}
          error={error}
          hint={
            <>
              Name: <bdi class="wrap">{nameToType(base)}</bdi>
            </>
          }
        />
        <div class="actions">
          <Button kind="danger">Delete permanently</Button>
          <ButtonLink href={`/bases/${base.id}/settings`}>Cancel</ButtonLink>
        </div>
      </Form>
    </Card>
  );
}

/** The name, with whitespace collapsed as a page shows it; the id if the name cannot be typed. */
export function nameToType(base: Pick<Base, "name" | "sourceBaseId">): string {
  return base.name.replace(/\s+/g, " ").trim() || base.sourceBaseId;
}
