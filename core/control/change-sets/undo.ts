/** The inverse of a change set, as another one. */
import type { Context } from "../../context";
import { conflict } from "../../errors";
import type { Base } from "../bases";
import { type ChangeSet, createChangeSet, getChangeSet } from "./change-sets";
import { type AppliedItem, appliedItems } from "./claims";
import { withFiles } from "./kept-files";
import { type CellValues, type ChangeOperation, isUnknownCell, linksIn } from "./operations";

/**
 * Undoes what the set has applied, in the opposite order: records that it created are deleted, and cells and records
 * get back what they had. A record that somebody has changed since stays as it is, and is refused.
 *
 * @throws BasetideError `not_found`; `conflict` if the set has not ended, nothing was applied, it is undone already, or what it
 *   replaced is not known
 */
export async function undoChangeSet(
  ctx: Pick<Context, "db" | "secrets" | "actor">,
  base: Base,
  id: string,
): Promise<ChangeSet> {
  const set = await getChangeSet(ctx.db, base.id, id);
  if (set.endedAt === null || (set.counts.applied ?? 0) === 0)
    throw conflict(`This change set is ${set.state}: there is nothing to undo`);
  const operations = (await appliedItems(ctx, id)).map(inverseOf);
  return createChangeSet(ctx, base, { operations, undoes: id, note: `Undoes ${id}` });
}

function inverseOf({
  operation,
  table,
  recordId: record,
  cells,
  before = {},
  after,
}: AppliedItem): ChangeOperation {
  const expected = { ...withFiles(withoutLinks(cells), before), ...after };
  if (operation === "create") return { operation: "delete", table, record, expected };
  const unknown = Object.keys(before).find((key) => isUnknownCell(before[key]));
  if (unknown !== undefined)
    throw conflict(
      `What the record ${record} had in the field ${unknown} is not known: SQL has only the first of its links`,
    );
  if (operation === "delete") return { operation: "create", table, fields: before };
  const fields = Object.fromEntries(Object.keys(cells!).map((key) => [key, before[key] ?? null]));
  return { operation: "update", table, record, fields, expected };
}

/** Leaves out cells that link to records of the set: their ids were not known when it was written down. */
function withoutLinks(cells: CellValues = {}): CellValues {
  return Object.fromEntries(
    Object.entries(cells).filter(([key, cell]) => linksIn({ [key]: cell }).length === 0),
  );
}
