/** The text form of the setting `indexes`: one column per line. */
import { type AskedIndex, MOST_INDEXES } from "../../core/control/bases";
import { BasetideError } from "../../core/errors";

export function indexLines(indexes: readonly AskedIndex[]): string {
  return indexes
    .map(({ table, column, kind }) => `${table}.${column}${kind === "trigram" ? " trigram" : ""}`)
    .join("\n");
}

/** @throws BasetideError `invalid_request` that names the invalid line */
export function readIndexes(written: string): AskedIndex[] {
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
