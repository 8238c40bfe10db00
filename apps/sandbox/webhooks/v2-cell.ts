/**
 * Formats cells for webhook payloads ("V2"): selects and links as objects with their names, lookups by linked record,
 * users with their role; everything else as in the records API.
 */
import { isStoredAttachment } from "../attachments";
import { linkedTable } from "../dependencies";
import {
  choicesOf,
  fieldById,
  idsOf,
  isEmptyCell,
  type SandboxBase,
  type SandboxField,
  type SandboxRow,
  type SandboxTable,
  textOption,
} from "../model";
import type { Sandbox } from "../sandbox";

/** The role that the sandbox reports for every user: it stores roles with keys, not with users. */
export const PERMISSION_LEVEL = "create";

export interface CellPosition {
  sandbox: Sandbox;
  base: SandboxBase;
  table: SandboxTable;
  row: SandboxRow;
  /** For the attachment URLs in one payload. */
  urlToken: string;
}

/** `value` of `field` as a payload shows it; null for an empty cell. */
export function v2Cell(place: CellPosition, field: SandboxField, value: unknown): unknown {
  if (isEmptyCell(value)) return null;
  switch (field.type) {
    case "singleSelect":
    case "externalSyncSource":
      return choice(field, value);
    case "multipleSelects":
      return Array.isArray(value) ? value.map((one) => choice(field, one)) : value;
    case "multipleRecordLinks":
      return links(place, field, value);
    case "multipleLookupValues":
    case "lookup":
      return lookup(place, field, value);
    case "singleCollaborator":
    case "createdBy":
    case "lastModifiedBy":
      return person(value);
    case "multipleCollaborators":
      return Array.isArray(value) ? value.map(person) : value;
    default:
      return Array.isArray(value) && value.some(isStoredAttachment)
        ? value.map((one) => place.sandbox.attachments.present(one, place.urlToken))
        : value;
  }
}

/** `{id, name, color?}`; a name that is not a choice (loaded or set raw) stays as it is. */
function choice(field: SandboxField, name: unknown): unknown {
  return choicesOf(field).find((one) => one.name === name) ?? name;
}

function person(value: unknown): unknown {
  return typeof value === "object" && value !== null
    ? { ...value, permissionLevel: PERMISSION_LEVEL }
    : value;
}

function links({ sandbox, base }: CellPosition, field: SandboxField, value: unknown): unknown {
  const other = linkedTable(base, field);
  return idsOf(value).map((id) => {
    const row = other?.rows.get(id);
    return { id, name: other && row ? sandbox.computed.primaryText(base, other, row) : "" };
  });
}

function lookup(place: CellPosition, field: SandboxField, value: unknown): unknown {
  const { sandbox, base, table, row } = place;
  const link = fieldById(table, textOption(field, "recordLinkFieldId") ?? "");
  const other = link && linkedTable(base, link);
  const target = other && fieldById(other, textOption(field, "fieldIdInLinkedTable") ?? "");
  // A failed lookup has an object in place of its values.
  if (!link || !other || !target || !Array.isArray(value)) return value;
  const linkedRecordIds = idsOf(row.cells[link.id]);
  const valuesByLinkedRecordId: Record<string, unknown[]> = {};
  for (const id of linkedRecordIds) {
    const linked = other.rows.get(id);
    if (!linked) continue;
    const far = v2Cell(
      { ...place, table: other, row: linked },
      target,
      sandbox.computed.cell(base, other, linked, target),
    );
    valuesByLinkedRecordId[id] = Array.isArray(far) ? far : [far];
  }
  return { linkedRecordIds, valuesByLinkedRecordId };
}
