/** The schema changes of the source, which the replica has followed. */
import type { SchemaChange } from "../../core/control/bases";
import { Ago, Badge, Card, Empty, type Tone } from "../components";

const words: Record<SchemaChange["kind"], string> = {
  table_added: "New table",
  table_dropped: "Table dropped",
  table_renamed: "Table renamed",
  table_rebuilt: "Table rebuilt",
  field_added: "New column",
  field_dropped: "Column dropped",
  field_renamed: "Column renamed",
  field_retyped: "Column retyped",
  table_waiting: "New table, not copied until you decide",
};

const tones: Record<SchemaChange["severity"], Tone> = {
  additive: "green",
  rename: "yellow",
  breaking: "red",
};

export function SchemaChanges({ changes, now }: { changes: SchemaChange[]; now: Date }) {
  if (changes.length === 0) {
    return (
      <Empty title="No schema changes">
        When tables or fields change in Airtable, what Basetide changes in the database is listed here.
      </Empty>
    );
  }
  return (
    <Card id="changes-card" title="Schema changes">
      <ul class="log">
        {changes.map((change) => (
          <li key={change.id}>
            <span class="muted small nowrap">
              <Ago at={change.seen_at} now={now} />
            </span>
            <span class="wrap">
              <Badge tone={tones[change.severity]}>{change.severity}</Badge>{" "}
              {words[change.kind] ?? change.kind}{" "}
              <code>{change.field === null ? change.table : `${change.table}.${change.field}`}</code>{" "}
              <bdi class="muted">{detailOf(change)}</bdi>
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

/** The old and the new value, if they add information. */
function detailOf({ kind, before, after }: SchemaChange): string {
  if (kind === "field_added") return [after?.type, after?.source_name].filter(Boolean).join(", ");
  if (!before || !after) return "";
  if (kind === "field_retyped") return `${typesOf(before)} → ${typesOf(after)}`;
  if (before.source_name === after.source_name && before.name === after.name) return "";
  return `${before.source_name} → ${after.source_name}`;
}

function typesOf({ type, source_type }: NonNullable<SchemaChange["before"]>): string {
  return [type, source_type && `(${source_type})`].filter(Boolean).join(" ");
}
