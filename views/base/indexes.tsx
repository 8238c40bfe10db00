/** Which columns of a base's tables have an index in its replica. */
import { type AskedIndex, type Base, MOST_INDEXES } from "../../core/control/bases";
import { BasetideError } from "../../core/errors";
import { Button, TextAreaField } from "../components";

const MOST_ROWS = 12;

export function Indexes(props: { base: Base; written?: string | undefined; error?: string | undefined }) {
  const { base, error } = props;
  const written = props.written ?? base.settings.indexes.map(line).join("\n");
  return (
    <form method="post" action={`/bases/${base.id}/indexes`} class="stack narrow">
      <TextAreaField
        label="Indexed columns"
        name="indexes"
        value={written}
        error={error}
        spellcheck={false}
        autocomplete="off"
        rows={Math.min(MOST_ROWS, Math.max(3, written.split("\n").length + 1))}
        placeholder="projects.status"
        hint={
          <>
            One per line, as <code>table.column</code>: a B-tree, or GIN where the column is an array. Add{" "}
            <code>trigram</code> for searches with <code>like '%…%'</code>, where the database has the
            extension <code>pg_trgm</code>. They are made without keeping readers waiting, and stay through
            renames and rebuilds.
          </>
        }
      />
      <Button>Save</Button>
    </form>
  );
}

function line({ table, column, kind }: AskedIndex): string {
  return `${table}.${column}${kind === "trigram" ? " trigram" : ""}`;
}

/** @throws BasetideError `invalid_request` naming the line that is not understood */
export function readIndexes(written: string): AskedIndex[] {
  const lines = written
    .split("\n")
    .map((text) => text.trim())
    .filter((text) => text !== "");
  if (lines.length > MOST_INDEXES) {
    throw new BasetideError("invalid_request", `Give at most ${MOST_INDEXES} indexes`);
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
