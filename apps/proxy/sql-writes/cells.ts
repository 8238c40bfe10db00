/** Converts values of columns, as SQL has them, to cells in the form of the source's API. */
import type { CellValues, KeptFile } from "../../../core/control/change-sets";
import type { FieldType } from "../../../core/source";

/** A value that its field cannot have. */
export class UnfitValue extends Error {
  constructor(
    readonly fieldId: string,
    message: string,
    readonly sqlState = "22023",
  ) {
    super(message);
  }
}

/** What is known of a value: the one that it replaces, undefined for a new record; and the names of files, by their URLs. */
interface Circumstances {
  had?: unknown;
  filenames?: Readonly<Record<string, string | null>> | undefined;
}
type Convert = (value: unknown, known: Circumstances) => unknown;

/** Thrown by the converters; `cellsOf` adds the field. */
class Unfit extends Error {
  constructor(
    message: string,
    readonly sqlState = "22023",
  ) {
    super(message);
  }
}

const asIs: Convert = (value) => value;

const number: Convert = (value) => {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw new Unfit(`${JSON.stringify(value)} is not a number that Airtable can have`);
};

const items = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value]);

const person: Convert = (one) => {
  if (typeof one !== "string") throw new Unfit("a collaborator is an e-mail address or a user id");
  return one.includes("@") ? { email: one } : { id: one };
};

const people: Convert = (value) => items(value).map((one) => person(one, {}));

/** A value that begins with all files that SQL shows adds to those that the source has: SQL may not show all of them. */
const attachments: Convert = (value, { had, filenames = {} }) => {
  const urls = items(value);
  const shown = Array.isArray(had) ? had : [];
  const fileOf = (url: unknown) => {
    const kept = shown.indexOf(url);
    if (kept >= 0) return { kept, of: shown.length } satisfies KeptFile;
    const filename = filenames[String(url)];
    return typeof filename === "string" ? { url, filename } : { url };
  };
  const isAddition =
    had !== undefined && urls.length > shown.length && shown.every((url, at) => url === urls[at]);
  if (!isAddition) return urls.map(fileOf);
  return [{ kept: "all" } satisfies KeptFile, ...urls.slice(shown.length).map(fileOf)];
};

const duration: Convert = (value) => {
  const seconds = durationSeconds(String(value));
  if (seconds === undefined) throw new Unfit(`${JSON.stringify(value)} is not a duration like 1:30:00`);
  return seconds;
};

/** Returns the seconds of `[-]H:MM[:SS[.fff]]`, or of a number of seconds. */
function durationSeconds(text: string): number | undefined {
  const [, sign, hours, minutes, seconds = "0"] =
    /^(-?)(\d+):([0-5]?\d)(?::([0-5]?\d(?:\.\d+)?))?$/.exec(text) ?? [];
  if (hours !== undefined)
    return (sign === "-" ? -1 : 1) * (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds));
  return /^-?\d+(?:\.\d+)?$/.test(text) ? Number(text) : undefined;
}

/** By type of field; a type that cannot be written has none. */
export const converters: Partial<Record<FieldType, Convert>> = {
  attachment: attachments,
  barcode: (value) => ({ text: String(value) }),
  checkbox: asIs,
  collaborator: (value) => {
    const [one, ...more] = items(value);
    if (more.length > 0) throw new Unfit("the field has one collaborator");
    return one === undefined ? null : person(one, {});
  },
  collaborators: people,
  currency: number,
  date: asIs,
  // SQL has UTC without a zone.
  date_time: (value) => `${value}Z`,
  duration,
  email: asIs,
  links: items,
  long_text: asIs,
  multiple_select: items,
  number,
  percent: number,
  phone: asIs,
  rating: number,
  rich_text: asIs,
  single_select: asIs,
  text: asIs,
  url: asIs,
};

/**
 * @param values by field id
 * @param types of the fields, by id
 * @param known the values that they replace, and the names of files
 * @throws UnfitValue
 */
export function cellsOf(
  values: CellValues,
  types: Readonly<Record<string, string>>,
  known: { had?: CellValues | undefined; filenames?: Circumstances["filenames"] } = {},
): CellValues {
  return Object.fromEntries(
    Object.entries(values).map(([fieldId, value]) => {
      const convert = converters[types[fieldId] as FieldType];
      if (!convert) throw new UnfitValue(fieldId, "Airtable computes this field", "428C9");
      try {
        return [
          fieldId,
          value === null || value === undefined
            ? null
            : convert(value, { had: known.had?.[fieldId], filenames: known.filenames }),
        ];
      } catch (error) {
        if (!(error instanceof Unfit)) throw error;
        throw new UnfitValue(fieldId, error.message, error.sqlState);
      }
    }),
  );
}
