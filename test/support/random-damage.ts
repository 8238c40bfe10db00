/** Random damages of one part of an answer: wrong types, nulls, missing and additional keys, strange and repeated ids. */
import type { Random } from "../../apps/sandbox/random";
import type { Damage, Json } from "./damaged-source";

/** The ids and names of a base that is damaged. */
export interface DamagedTable {
  id: string;
  fields: { id: string; name: string }[];
  records: { id: string }[];
}

const LONG = "x".repeat(30_000);
const deep = (levels: number): Json => {
  let value: Json = [];
  for (let level = 0; level < levels; level++) value = [value];
  return value;
};
/** Values of no use anywhere. */
const JUNK: [what: string, value: () => Json][] = [
  ["null", () => null],
  ["a number", () => 7],
  ["true", () => true],
  ["a list", () => []],
  ["a list of null", () => [null]],
  ["an object", () => ({ later: { id: 7 } })],
  ["a deep list", () => deep(1500)],
];
const TEXTS: typeof JUNK = [
  ["an empty text", () => ""],
  ["a long text", () => LONG],
];

export function pick<T>(random: Random, from: readonly T[]): T {
  return from[random.int(0, from.length - 1)]!;
}

/** Sets a key to junk, or removes it. */
function spoil(random: Random, key: string, junk: typeof JUNK): { what: string; apply: (at: Json) => void } {
  const [what, value] = pick(random, [...junk, ["missing", () => undefined] as (typeof JUNK)[number]]);
  return {
    what: `${key} is ${what}`,
    apply: (at) => {
      if (what === "missing") delete at[key];
      else at[key] = value();
    },
  };
}

/** Damages one record, in every answer that has it. */
export function recordDamage(random: Random, table: DamagedTable): Damage {
  const target = pick(random, table.records).id;
  const other = table.records.find(({ id }) => id !== target)!.id;
  const field = pick(random, table.fields).id;
  const records = new Set([target]);
  const [junk, value] = pick(random, JUNK);
  const at = (change: (list: Json[], index: number) => void) => (answer: Json) => {
    const list: Json[] = Array.isArray(answer.records) ? answer.records : [answer];
    const index = list.findIndex((record) => record?.id === target);
    if (index < 0) return false;
    change(list, index);
    if (!Array.isArray(answer.records) && list[0] !== answer) {
      for (const key of Object.keys(answer)) delete answer[key];
      Object.assign(answer, list[0]);
    }
    return true;
  };
  const spoiled = (key: string, more: typeof JUNK = []) => {
    const { what, apply } = spoil(random, key, [...JUNK, ...more]);
    return { what: `${key}: ${what}`, change: (list: Json[], index: number) => apply(list[index]) };
  };
  const choices: [() => { what: string; change: (list: Json[], index: number) => void }, boolean][] = [
    [() => ({ what: `it is ${junk}`, change: (list, index) => (list[index] = value()) }), true],
    [() => spoiled("id", TEXTS), true],
    [() => ({ what: "id: row_1", change: (list, index) => (list[index].id = "row_1") }), true],
    [() => ({ what: "id: of another record", change: (list, index) => (list[index].id = other) }), false],
    [() => spoiled("createdTime", TEXTS), true],
    [
      () => {
        const { what, apply } = spoil(random, "fields", [...JUNK.slice(0, 5), ...TEXTS]);
        return { what, change: (list, index) => apply(list[index]) };
      },
      true,
    ],
    [
      () => ({ what: `a cell is ${junk}`, change: (list, index) => (list[index].fields[field] = value()) }),
      false,
    ],
    [() => ({ what: "an unknown key", change: (list, index) => (list[index].later = value()) }), false],
    [
      () => ({
        what: "it occurs twice",
        change: (list, index) => list.splice(index, 0, structuredClone(list[index])),
      }),
      false,
    ],
    [() => ({ what: `${junk} before it`, change: (list, index) => list.splice(index, 0, value()) }), true],
  ];
  const [choice, isNamed] = pick(random, choices);
  const { what, change } = choice();
  if (what === "id: of another record") records.add(other);
  return { kind: "records", what: `record ${target}: ${what}`, apply: at(change), records, isNamed };
}

const NONE: ReadonlySet<string> = new Set();

/** Damages one definition. No row and no column may differ. */
export function schemaDamage(random: Random, tables: DamagedTable[]): Damage {
  const table = pick(random, tables);
  const field = pick(random, table.fields);
  const notText = JUNK;
  const [junk, value] = pick(random, JUNK);
  const inTable = (change: (tables: Json[], index: number) => void) => (answer: Json) => {
    const index = answer.tables.findIndex((one: Json) => one?.id === table.id);
    if (index < 0) return false;
    change(answer.tables, index);
    return true;
  };
  const inField = (change: (fields: Json[], index: number) => void) =>
    inTable((all, at) => {
      const { fields } = all[at];
      const index = fields.findIndex((one: Json) => one?.id === field.id);
      if (index >= 0) change(fields, index);
    });
  const spoiled = (key: string, kinds: typeof JUNK) => {
    const { what, apply } = spoil(random, key, kinds);
    return { what, change: (list: Json[], index: number) => apply(list[index]) };
  };
  type Choice = [
    where: "table" | "field",
    make: () => { what: string; change: (list: Json[], index: number) => void },
    isNamed: boolean,
  ];
  const present = (key: string, kinds: typeof JUNK) => () => {
    const [what, made] = pick(random, kinds);
    return {
      what: `${key} is ${what}`,
      change: (list: Json[], index: number) => {
        list[index][key] = made();
      },
    };
  };
  const entry = (where: "table" | "field"): Choice[] => [
    [where, () => ({ what: `it is ${junk}`, change: (list, index) => (list[index] = value()) }), true],
    [where, () => spoiled("id", [...notText, ...TEXTS]), true],
    [where, () => spoiled("name", notText), true],
    [where, present("description", notText.slice(1)), true],
    [where, () => ({ what: `${junk} before it`, change: (list, at) => list.splice(at, 0, value()) }), true],
    [
      where,
      () => ({
        what: "it occurs twice",
        change: (list, at) => list.splice(at, 0, structuredClone(list[at])),
      }),
      true,
    ],
    [
      where,
      () => ({
        what: "it has the id of the next one",
        change: (list, at) => (list[at].id = list[(at + 1) % list.length]?.id),
      }),
      true,
    ],
    [where, () => ({ what: "an unknown key", change: (list, at) => (list[at].later = value()) }), false],
  ];
  const [where, make, isNamed] = pick(random, [
    ...entry("table"),
    ...entry("field"),
    ["table", () => spoiled("fields", [...notText, ...TEXTS]), true],
    ["table", present("primaryFieldId", notText.slice(1)), true],
    ["table", present("views", [...notText, ...TEXTS]), false],
    ["field", () => spoiled("type", notText), true],
    ["field", present("options", [...notText.slice(1, 5), ...notText.slice(6), ...TEXTS]), true],
  ] as Choice[]);
  const { what, change } = make();
  return {
    kind: "schema",
    what: `${where} ${where === "table" ? table.id : field.id}: ${what}`,
    apply: (where === "table" ? inTable : inField)(change),
    records: NONE,
    isNamed,
  };
}

/** Damages one payload of each answer that has some. Nothing may be missing in SQL because of it. */
export function payloadDamage(random: Random): Damage {
  const [junk, value] = pick(random, JUNK);
  const at = random.int(0, 9);
  const firstKey = (part: Json) => Object.keys(part ?? {})[0];
  const inChange = (change: (table: Json) => void) => (payloads: Json[], index: number) => {
    const tables = payloads[index].changedTablesById;
    const key = firstKey(tables);
    if (key) change(tables[key]);
  };
  const part = pick(random, ["changedRecordsById", "createdRecordsById", "destroyedRecordIds"]);
  const choices: [what: string, change: (payloads: Json[], index: number) => void][] = [
    [`it is ${junk}`, (payloads, index) => (payloads[index] = value())],
    [`its tables are ${junk}`, (payloads, index) => (payloads[index].changedTablesById = wrong(value))],
    [
      "a table has another kind of id",
      (payloads, index) => {
        const tables = payloads[index].changedTablesById;
        const key = firstKey(tables);
        if (!key) return;
        tables[`sync ${key}`] = tables[key];
        delete tables[key];
      },
    ],
    [
      `a table is ${junk}`,
      (payloads, index) => {
        const tables = payloads[index].changedTablesById;
        const key = firstKey(tables);
        if (key) tables[key] = wrong(value);
      },
    ],
    [
      `${part} is ${junk}`,
      inChange((table) => {
        if (table[part] !== undefined) table[part] = part === "destroyedRecordIds" ? value() : wrong(value);
        if (part === "destroyedRecordIds" && Array.isArray(table[part])) table[part] = [null];
      }),
    ],
    [
      `a record of ${part} is ${junk}`,
      inChange((table) => {
        const key = firstKey(table[part]);
        if (key) table[part][key] = value();
      }),
    ],
    [
      `a record of ${part} has another kind of id`,
      inChange((table) => {
        const key = firstKey(table[part]);
        if (!key || Array.isArray(table[part])) return;
        table[part][`row ${key}`] = table[part][key];
        delete table[part][key];
      }),
    ],
    ["an unknown key", (payloads, index) => (payloads[index].later = value())],
    ["it occurs twice", (payloads, index) => payloads.splice(index, 0, structuredClone(payloads[index]))],
  ];
  const answers: [what: string, apply: (answer: Json) => void][] = [
    [`the cursor is ${junk}`, (answer) => (answer.cursor = value())],
    ["the cursor is far ahead", (answer) => (answer.cursor = 1_000_000)],
    ["the cursor is 1", (answer) => (answer.cursor = 1)],
    ["there is no cursor", (answer) => delete answer.cursor],
    [`mightHaveMore is ${junk}`, (answer) => (answer.mightHaveMore = value() === true ? null : value())],
  ];
  const isOfAnswer = random.int(0, 3) === 0;
  const [what, change] = pick<[string, (a: Json, b: number) => void]>(random, isOfAnswer ? answers : choices);
  return {
    kind: "payloads",
    what: isOfAnswer ? what : `payload ${at}: ${what}`,
    apply(answer) {
      if (answer.payloads.length === 0) return false;
      if (isOfAnswer) change(answer, 0);
      else change(answer.payloads, at % answer.payloads.length);
      return true;
    },
    records: NONE,
    isNamed: false,
  };
}

/** An object without entries, and an absent part, say that nothing has changed. */
function wrong(value: () => Json): Json {
  const made = value();
  return typeof made === "object" && made !== null && !Array.isArray(made) ? "an object" : made;
}

/** Damages one webhook of the list, and a payload, so that the list is asked for. */
export function webhookDamages(random: Random): Damage[] {
  const keys = ["id", "notificationUrl", "cursorForNextPayload", "areNotificationsEnabled", "isHookEnabled"];
  const [junk, value] = pick(random, JUNK.slice(0, 6));
  const key = pick(random, [...keys, "expirationTime"]);
  const { what, apply } = spoil(random, key, JUNK);
  const choices: [string, (list: Json[]) => void][] = [
    [`an entry is ${junk}`, (list) => list.push(value())],
    [
      `another webhook: ${what}`,
      (list) => {
        const other = { ...list[0], id: "achOther000000001", notificationUrl: "https://example.org/" };
        apply(other);
        list.push(other);
      },
    ],
    [`the own webhook: ${what}`, (list) => void (list[0] && apply(list[0]))],
  ];
  const [told, change] = pick(random, choices);
  const list: Damage = {
    kind: "webhooks",
    what: told,
    apply: (answer) => {
      change(answer.webhooks);
      return true;
    },
    records: NONE,
    isNamed: false,
  };
  return [
    list,
    {
      ...payloadDamage(random),
      what: told,
      apply: (answer) => {
        if (answer.payloads.length === 0) return false;
        answer.payloads[0] = null;
        return true;
      },
    },
  ];
}
