/** Deletes a base: shows what is deleted and what stays, and asks for the base's name. */
import type { Base } from "../../core/control/bases";
import { Button, ButtonLink, Card } from "../components";
import { Field } from "../components/field";

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
        <li>Syncing ends, and writes through the proxy are forwarded without being replicated.</li>
        {isHosted ? (
          <li>
            The replica is dropped, with everything in its schema <code>{base.database.schema}</code>: views
            and tables of your own too. The whole database goes with the last base in it.
          </li>
        ) : (
          <li>Your database stays as it is, with the rows that are there.</li>
        )}
        <li>The base in the source is not touched.</li>
      </ul>
      <form method="post" action={`/bases/${base.id}/delete`} class="stack narrow">
        <Field
          label="Type the base's name to delete it"
          name="name"
          required
          autocomplete="off"
          spellcheck={false}
          value={typed}
          error={error}
          hint={
            <>
              Its name: <bdi class="wrap">{nameToType(base)}</bdi>
            </>
          }
        />
        <div class="actions">
          <Button kind="danger">Delete for good</Button>
          <ButtonLink href={`/bases/${base.id}/settings`}>Keep it</ButtonLink>
        </div>
      </form>
    </Card>
  );
}

/** The name, with whitespace collapsed as a page shows it; the id if the name cannot be typed. */
export function nameToType(base: Pick<Base, "name" | "sourceBaseId">): string {
  return base.name.replace(/\s+/g, " ").trim() || base.sourceBaseId;
}
