/**
 * The columns with the details of attachments: next to `photos text[]`, which has the URLs, `photos__files jsonb` has an
 * object per file. `sql/replica/link-views.sql` shows both as a view, one row per file.
 *
 * To everything that builds, merges and drops columns they are columns like others, whose ids are not the source's. The
 * details are written with their row, so the view and the row are always of the same moment. They have no URLs: these
 * change at every read.
 */
import { assignSuffixed } from "./naming";
import type { ColumnSpec } from "./spec";

/** No other column has two underscores in a row in its name, unless somebody chose it. */
const SUFFIX = "__files";

/** Returns the columns of a table with the details of attachments after each column of attachments. */
export function withFileColumns(columns: ColumnSpec[], live: ColumnSpec[] = []): ColumnSpec[] {
  const listed = columns.filter(({ type, columnType }) => type === "attachment" && columnType === "text[]");
  if (listed.length === 0) return columns;
  const liveNames = new Map(live.map(({ fieldId, name }) => [fieldId, name]));
  const names = assignSuffixed(
    listed.map(({ fieldId, name }) => ({ id: fieldId, stem: name })),
    {
      suffix: SUFFIX,
      taken: columns.map(({ name }) => name),
      remembered: new Map(
        live.flatMap(({ filesOf, name }): [string, { name: string; stem: string }][] =>
          filesOf === undefined ? [] : [[filesOf, { name, stem: liveNames.get(filesOf) ?? "" }]],
        ),
      ),
    },
  );
  return columns.flatMap((column) => {
    const name = names.get(column.fieldId);
    return name === undefined ? [column] : [column, fileColumn(column, name)];
  });
}

function fileColumn({ fieldId, sourceName, sourceType }: ColumnSpec, name: string): ColumnSpec {
  return {
    fieldId: `${fieldId}/files`,
    name,
    sourceName: `${sourceName} (files)`,
    description: "The id, name, type, size in bytes, width and height of each attachment.",
    type: "attachment",
    sourceType,
    columnType: "jsonb",
    filesOf: fieldId,
  };
}
