/**
 * Validates written cells: checks each value against its field's type and returns the stored form.
 *
 * C1. Without typecast, a value of the wrong JSON type is rejected, never converted. With it, text is converted where
 *     possible; unknown choices are added to the field, and unknown names of linked records become records.
 */
import { writtenAttachments } from "./attachments";
import type { Computed } from "./computed";
import { linkedTable } from "./dependencies";
import { apiError, cannotAccept, invalidValue, rowDoesNotExist } from "./errors";
import {
  type Cells,
  choicesOf,
  isComputed,
  type SandboxField,
  type SandboxRow,
  type SandboxTable,
  type SelectChoice,
  type User,
} from "./model";
import { isSandboxId, type Random } from "./random";
import { parseDay, parseLoosely, parseMoment } from "./times";
import type { Transaction } from "./transaction";

/** What writing a cell may need in addition to the value. */
export interface WriteContext {
  transaction: Transaction;
  computed: Computed;
  users: ReadonlyMap<string, User>;
  random: Random;
  typecast: boolean;
  /** Whether a link may create rows, and a select may create choices. Requires the right to do so. */
  mayExtend: boolean;
}

const NULLISH = new Set<unknown>([null, undefined, "", false]);

/** Colors of new choices, in turn. */
const CHOICE_COLORS = [
  "blueLight2",
  "cyanLight2",
  "tealLight2",
  "greenLight2",
  "yellowLight2",
  "orangeLight2",
];

/**
 * Returns the stored form of `value`; undefined for an empty cell.
 *
 * @param current the current cell
 * @throws ApiError 422 with the API's message
 */
export function writtenCell(
  context: WriteContext,
  field: SandboxField,
  value: unknown,
  current: unknown,
): unknown {
  if (isComputed(field))
    throw invalidValue(`Field "${field.name}" cannot accept a value because the field is computed`);
  if (value === null || value === undefined) return undefined;
  const write = WRITERS[field.type];
  return write ? write(context, field, value, current) : value;
}

type Writer = (context: WriteContext, field: SandboxField, value: unknown, current: unknown) => unknown;

const WRITERS: Record<string, Writer> = {
  singleLineText: text,
  multilineText: text,
  email: text,
  url: text,
  phoneNumber: text,
  richText: (context, field, value, current) => richText(text(context, field, value, current)),
  number,
  percent: number,
  currency: number,
  duration: number,
  rating,
  checkbox,
  date,
  dateTime,
  singleSelect,
  multipleSelects,
  singleCollaborator: (context, field, value) =>
    NULLISH.has(value) ? undefined : collaborator(context, field, value),
  multipleCollaborators: (context, field, value) => {
    if (!Array.isArray(value)) throw cannotAccept(field.name);
    return value.map((one) => collaborator(context, field, one));
  },
  multipleRecordLinks: links,
  multipleAttachments: (context, _field, value, current) =>
    NULLISH.has(value) ? undefined : writtenAttachments(value, current, context.random),
  barcode,
};

function text(
  context: WriteContext,
  field: SandboxField,
  value: unknown,
  _current: unknown,
): string | undefined {
  if (typeof value === "string") return value === "" ? undefined : value;
  if (context.typecast && (typeof value === "number" || typeof value === "boolean")) return String(value);
  throw cannotAccept(field.name);
}

/** Formats rich text as the service returns it: `- ` for list items, a line feed at the end. */
function richText(value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  const bulleted = value.replace(/^(\s*)\* /gm, "$1- ");
  return bulleted.endsWith("\n") ? bulleted : `${bulleted}\n`;
}

function number(context: WriteContext, field: SandboxField, value: unknown): number | undefined {
  // JSON can contain numbers that a double cannot represent: they arrive as Infinity.
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (typeof value !== "string" || !context.typecast) throw cannotAccept(field.name);
  if (value.trim() === "") return undefined;
  const percent = field.type === "percent" && value.trim().endsWith("%");
  const seconds =
    field.type === "duration" ? /^(\d+):(\d{1,2})(?::(\d{1,2}(?:\.\d+)?))?$/.exec(value.trim()) : null;
  if (seconds) return Number(seconds[1]) * 3600 + Number(seconds[2]) * 60 + Number(seconds[3] ?? 0);
  const parsed = Number(value.replace(/[^0-9.eE+-]/g, ""));
  // "9e999" is too large for a double.
  if (!Number.isFinite(parsed) || !/\d/.test(value)) return undefined;
  return percent ? parsed / 100 : parsed;
}

function rating(context: WriteContext, field: SandboxField, value: unknown): number | undefined {
  const stars = number(context, field, value);
  if (stars === undefined) return undefined;
  const max = typeof field.options?.max === "number" ? field.options.max : 10;
  if (!Number.isInteger(stars) || stars < 1 || stars > max) throw cannotAccept(field.name);
  return stars;
}

const TRUE_WORDS = new Set(["true", "checked", "yes", "1"]);
const FALSE_WORDS = new Set(["false", "unchecked", "no", "0", ""]);

function checkbox(context: WriteContext, field: SandboxField, value: unknown): true | undefined {
  if (typeof value === "boolean") return value || undefined;
  const word = String(value).toLowerCase();
  if (context.typecast && TRUE_WORDS.has(word)) return true;
  if (context.typecast && FALSE_WORDS.has(word)) return undefined;
  throw unparsable(field, value);
}

function date(context: WriteContext, field: SandboxField, value: unknown): string | undefined {
  if (value === "") return undefined;
  const day = typeof value === "string" ? parseDay(value) : undefined;
  if (day) return day;
  const loose = context.typecast ? parseLoosely(String(value))?.slice(0, 10) : undefined;
  if (loose) return loose;
  throw unparsable(field, value);
}

function dateTime(context: WriteContext, field: SandboxField, value: unknown): string | undefined {
  if (value === "") return undefined;
  // The service was observed to accept milliseconds since 1970 as a number.
  if (typeof value === "number" && Math.abs(value) <= 8.64e15) return new Date(value).toISOString();
  const zone = typeof field.options?.timeZone === "string" ? field.options.timeZone : "utc";
  const moment = typeof value === "string" ? parseMoment(value, zone) : undefined;
  if (moment) return moment;
  const loose = context.typecast ? parseLoosely(String(value)) : undefined;
  if (loose) return loose;
  throw unparsable(field, value);
}

function singleSelect(context: WriteContext, field: SandboxField, value: unknown): string | undefined {
  if (value === "") return undefined;
  if (typeof value !== "string" && !(context.typecast && typeof value === "number"))
    throw cannotAccept(field.name);
  return choiceName(context, field, String(value));
}

function multipleSelects(context: WriteContext, field: SandboxField, value: unknown): string[] | undefined {
  const names = context.typecast && typeof value === "string" ? splitList(value) : value;
  if (!Array.isArray(names)) throw cannotAccept(field.name);
  const written = names.map((name: unknown) => {
    if (typeof name !== "string" || name === "") throw cannotAccept(field.name);
    return choiceName(context, field, name);
  });
  return [...new Set(written)];
}

/** Returns the choice's name for its name or id; adds an unknown one if typecast allows it. */
function choiceName(context: WriteContext, field: SandboxField, nameOrId: string): string {
  const choices = choicesOf(field);
  const found = choices.find((choice) => choice.name === nameOrId || choice.id === nameOrId);
  if (found) return found.name;
  if (!context.typecast || !context.mayExtend)
    throw apiError(
      422,
      "INVALID_MULTIPLE_CHOICE_OPTIONS",
      `Insufficient permissions to create new select option ""${nameOrId}""`,
    );
  const choice: SelectChoice = {
    id: context.random.id("sel"),
    name: nameOrId,
    color: CHOICE_COLORS[choices.length % CHOICE_COLORS.length]!,
  };
  const table = tableOf(context, field);
  context.transaction.updateField(table, field, {
    options: { ...field.options, choices: [...choices, choice] },
  });
  return nameOrId;
}

function collaborator(context: WriteContext, field: SandboxField, value: unknown): User {
  const { id, email } = (
    typeof value === "object" && value !== null ? value : { id: value }
  ) as Partial<User>;
  const wanted = email?.toLowerCase();
  for (const user of context.users.values()) {
    if (user.id === id || (wanted !== undefined && user.email?.toLowerCase() === wanted)) return user;
    const isNamed = typeof value === "string" && (user.name === value || user.email === value);
    if (context.typecast && isNamed) return user;
  }
  throw cannotAccept(field.name);
}

function links(context: WriteContext, field: SandboxField, value: unknown): string[] | undefined {
  const items = context.typecast && typeof value === "string" ? splitList(value) : value;
  if (!Array.isArray(items)) throw cannotAccept(field.name);
  const other = linkedTable(context.transaction.base, field);
  const ids = items.map((item: unknown) => {
    const text = typeof item === "object" && item !== null ? (item as { id?: unknown }).id : item;
    if (typeof text !== "string") throw cannotAccept(field.name);
    if (isSandboxId("rec", text) && (other?.rows.has(text) || !context.typecast)) {
      if (!other?.rows.has(text)) throw rowDoesNotExist(text);
      return text;
    }
    if (!context.typecast || !other)
      throw apiError(422, "INVALID_RECORD_ID", `Value "${text}" is not a valid record ID.`);
    return linkedByName(context, other, text);
  });
  return [...new Set(ids)];
}

/** Returns the row of `table` whose primary cell reads `name`; creates it if it does not exist. */
function linkedByName(context: WriteContext, table: SandboxTable, name: string): string {
  const { base } = context.transaction;
  for (const row of table.rows.values())
    if (context.computed.primaryText(base, table, row) === name) return row.id;
  const primary = table.fields.find((field) => field.id === table.primaryFieldId);
  const cells: Cells = {};
  if (primary && !isComputed(primary)) cells[primary.id] = writtenCell(context, primary, name, undefined);
  return context.transaction.createRow(table, cells).id;
}

function barcode(context: WriteContext, field: SandboxField, value: unknown): unknown {
  if (context.typecast && typeof value === "string") return { text: value };
  const { text, type } = (typeof value === "object" ? value : {}) as { text?: unknown; type?: unknown };
  if (typeof text !== "string") throw cannotAccept(field.name);
  return type === undefined ? { text } : { text, type };
}

function splitList(value: string): string[] {
  return value
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

function unparsable(field: SandboxField, value: unknown) {
  const shown = typeof value === "string" ? value : JSON.stringify(value);
  return invalidValue(`Cannot parse value "${shown}" for field ${field.name}`);
}

function tableOf(context: WriteContext, field: SandboxField): SandboxTable {
  for (const table of context.transaction.base.tables.values())
    if (table.fields.includes(field)) return table;
  throw cannotAccept(field.name);
}

/**
 * Returns the stored cells for a record's `fields` as a client sends them, by name or id.
 *
 * @throws ApiError `UNKNOWN_FIELD_NAME` for a key that is not a field, else as `writtenCell`
 */
export function writtenCells(
  context: WriteContext,
  findField: (nameOrId: string) => SandboxField,
  fields: Record<string, unknown>,
  row?: SandboxRow,
): Map<SandboxField, unknown> {
  const cells = new Map<SandboxField, unknown>();
  for (const [key, value] of Object.entries(fields)) {
    const field = findField(key);
    cells.set(field, writtenCell(context, field, value, row?.cells[field.id]));
  }
  return cells;
}
