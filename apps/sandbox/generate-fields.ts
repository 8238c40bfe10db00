/**
 * The fields of a generated table, in order, and the generators of their cells. A computed field comes after all fields
 * that it reads.
 */
import { newAttachment } from "./attachments";
import type { Random } from "./random";

/** Undefined leaves the cell empty. */
export type MakeCell = (random: Random, rowIndex: number) => unknown;

export interface FieldKind {
  name: string;
  type: string;
  options?: (ids: IdsOf) => Record<string, unknown>;
  aggregation?: string;
  /** Absent for fields that are computed or filled by links. */
  cell?: MakeCell;
}

interface IdsOf {
  fieldId(name: string): string;
  linkedTableId: string;
  linkedFieldId(name: string): string;
  choiceId(): string;
}

const WORDS = (
  "amber basin cedar delta ember fjord grove harbor island jetty kelp lagoon meadow north orchard pier quartz " +
  "river stone tide umber valley willow yard zephyr Łódź Ærø naïve 東京 Ωmega"
).split(" ");
const STATUSES = ["To do", "In progress", "Blocked", "Done"];
const TAGS = ["red", "green", "blue", "urgent", "later", "x, y"];
const PEOPLE = [
  { id: "usrSandboxAda0001", email: "ada@example.org", name: "Ada Example" },
  { id: "usrSandboxBen0002", email: "ben@example.org", name: "Ben Example" },
  { id: "usrSandboxCho0003", email: "cho@example.org", name: "Cho Example" },
];
const DAY_MS = 86_400_000;
const FIRST_DAY_MS = Date.UTC(2024, 0, 1);

function words(random: Random, least: number, most: number): string {
  return Array.from({ length: random.int(least, most) }, () => random.pick(WORDS)).join(" ");
}

/** Generates the cell in `share` of the rows, else leaves it empty. */
function sometimes(share: number, make: MakeCell): MakeCell {
  return (random, i) => (random.chance(share) ? make(random, i) : undefined);
}

function choices(names: string[]): FieldKind["options"] {
  return ({ choiceId }) => ({
    choices: names.map((name) => ({ id: choiceId(), name, color: "blueLight2" })),
  });
}

const isoDay = (ms: number) => new Date(ms).toISOString().slice(0, 10);
const fixed = (options: Record<string, unknown>) => () => structuredClone(options);

const DATE_FORMAT = { dateFormat: { name: "iso", format: "YYYY-MM-DD" } };
const TIME_FORMAT = { ...DATE_FORMAT, timeFormat: { name: "24hour", format: "HH:mm" }, timeZone: "utc" };

const KINDS: FieldKind[] = [
  { name: "Name", type: "singleLineText", cell: (random, i) => `${words(random, 1, 3)} ${i + 1}` },
  { name: "Notes", type: "multilineText", cell: sometimes(0.8, (random) => words(random, 4, 20)) },
  {
    name: "Amount",
    type: "number",
    options: fixed({ precision: 2 }),
    cell: sometimes(0.95, (random) => random.int(-5000, 100_000) / 100),
  },
  {
    name: "Done",
    type: "checkbox",
    options: fixed({ icon: "check", color: "greenBright" }),
    cell: sometimes(0.4, () => true),
  },
  {
    name: "Due",
    type: "date",
    options: fixed(DATE_FORMAT),
    cell: sometimes(0.7, (random) => isoDay(FIRST_DAY_MS + random.int(0, 900) * DAY_MS)),
  },
  {
    name: "Status",
    type: "singleSelect",
    options: choices(STATUSES),
    cell: (random) => random.pick(STATUSES),
  },
  {
    name: "Tags",
    type: "multipleSelects",
    options: choices(TAGS),
    cell: sometimes(0.6, (random) => [...new Set([random.pick(TAGS), random.pick(TAGS)])]),
  },
  {
    name: "Related",
    type: "multipleRecordLinks",
    options: ({ linkedTableId }) => ({ linkedTableId, isReversed: false, prefersSingleRecordLink: false }),
  },
  {
    name: "Related names",
    type: "multipleLookupValues",
    options: ({ fieldId, linkedFieldId }) => ({
      isValid: true,
      recordLinkFieldId: fieldId("Related"),
      fieldIdInLinkedTable: linkedFieldId("Name"),
      result: { type: "singleLineText" },
    }),
  },
  {
    name: "Related amount",
    type: "rollup",
    aggregation: "SUM",
    options: ({ fieldId, linkedFieldId }) => ({
      isValid: true,
      recordLinkFieldId: fieldId("Related"),
      fieldIdInLinkedTable: linkedFieldId("Amount"),
      referencedFieldIds: [],
      result: { type: "number", options: { precision: 2 } },
    }),
  },
  {
    name: "Label",
    type: "formula",
    options: ({ fieldId }) => ({
      isValid: true,
      formula: `{${fieldId("Name")}}&IF({${fieldId("Done")}},' (done)','')`,
      referencedFieldIds: [fieldId("Name"), fieldId("Done")],
      result: { type: "singleLineText" },
    }),
  },
  {
    name: "Starts",
    type: "dateTime",
    options: fixed(TIME_FORMAT),
    cell: sometimes(0.7, (random) => new Date(FIRST_DAY_MS + random.int(0, 1e9) * 60).toISOString()),
  },
  {
    name: "Email",
    type: "email",
    cell: sometimes(0.6, (random, i) => `${random.pick(WORDS)}${i}@example.org`),
  },
  {
    name: "Price",
    type: "currency",
    options: fixed({ precision: 2, symbol: "$" }),
    cell: sometimes(0.8, (random) => random.int(0, 1_000_000) / 100),
  },
  { name: "Owner", type: "singleCollaborator", cell: sometimes(0.5, (random) => random.pick(PEOPLE)) },
  {
    name: "Files",
    type: "multipleAttachments",
    options: fixed({ isReversed: false }),
    cell: sometimes(0.2, (random, i) => [
      newAttachment(
        random.id("att"),
        `https://files.example.org/${i}/${random.pick(["scan.png", "note.pdf"])}`,
      ),
    ]),
  },
  { name: "Number", type: "autoNumber" },
  {
    name: "Share",
    type: "percent",
    options: fixed({ precision: 1 }),
    cell: (random) => random.int(0, 1000) / 1000,
  },
  {
    name: "Stars",
    type: "rating",
    options: fixed({ icon: "star", max: 5, color: "yellowBright" }),
    cell: sometimes(0.5, (random) => random.int(1, 5)),
  },
  {
    name: "Took",
    type: "duration",
    options: fixed({ durationFormat: "h:mm:ss" }),
    cell: sometimes(0.5, (random) => random.int(0, 90_000)),
  },
  {
    name: "Website",
    type: "url",
    cell: sometimes(0.4, (random) => `https://example.org/${random.int(1, 9999)}`),
  },
  { name: "Phone", type: "phoneNumber", cell: sometimes(0.3, (random) => `+1 555 01${random.int(10, 99)}`) },
  { name: "Story", type: "richText", cell: sometimes(0.3, (random) => `- ${words(random, 2, 6)}\n`) },
  {
    name: "Related count",
    type: "count",
    options: ({ fieldId }) => ({ isValid: true, recordLinkFieldId: fieldId("Related") }),
  },
  {
    name: "Created",
    type: "createdTime",
    options: fixed({ result: { type: "dateTime", options: TIME_FORMAT } }),
  },
  {
    name: "Modified",
    type: "lastModifiedTime",
    options: fixed({
      isValid: true,
      referencedFieldIds: [],
      result: { type: "dateTime", options: TIME_FORMAT },
    }),
  },
  { name: "Created by", type: "createdBy" },
  { name: "Modified by", type: "lastModifiedBy" },
  {
    name: "Team",
    type: "multipleCollaborators",
    cell: sometimes(0.4, (random) => [...new Set([random.pick(PEOPLE), random.pick(PEOPLE)])]),
  },
  {
    name: "Code",
    type: "barcode",
    cell: sometimes(0.3, (random) => ({ text: String(random.int(1e9, 2e9)) })),
  },
  {
    name: "Open",
    type: "button",
    cell: (_random, i) => ({ label: "Open", url: `https://example.org/open/${i}` }),
  },
  {
    name: "Summary",
    type: "aiText",
    options: fixed({ prompt: ["Summarise"], referencedFieldIds: [] }),
    cell: sometimes(0.5, (random) => ({ state: "generated", isStale: false, value: words(random, 3, 9) })),
  },
];

const LINKING = new Set(["multipleRecordLinks", "multipleLookupValues", "rollup", "count"]);

export function fieldKinds(withLinks: boolean): FieldKind[] {
  return withLinks ? KINDS : KINDS.filter((kind) => !LINKING.has(kind.type));
}
