/** The settings of a base in requests and answers of the management API, generated from the table of settings. */
import { t } from "elysia";
import {
  MOST_INDEXES,
  MOST_MUTED_FIELDS,
  MOST_OWN_NAMES,
  type SettingsOfType,
  settingList,
  settings,
} from "../../../core/control/bases";
import { nullable, oneOf, strict } from "./parts";

type PlainSettings = Record<SettingsOfType<"boolean">, ReturnType<typeof t.Boolean>> &
  Record<SettingsOfType<"integer">, ReturnType<typeof t.Integer>>;

/** All but the lists, which have another form in requests than in answers. */
export const plainSettings = Object.fromEntries(
  settingList
    .filter(({ type }) => type === "boolean" || type === "integer")
    .map((setting) => {
      const description = `${setting.effect} Default: ${setting.default}.`;
      const examples = [setting.default];
      if (setting.type !== "integer") return [setting.name, t.Boolean({ description, examples })];
      const { minimum, maximum } = setting;
      return [setting.name, t.Integer({ minimum, maximum, description, examples })];
    }),
) as PlainSettings;

const kind = oneOf(["default", "trigram"], {
  description:
    "default: a B-tree, or GIN where the column is an array; trigram: for like '%…%', with pg_trgm",
});

export const indexes = t.Array(
  t.Object({ table: t.String(), column: t.String(), kind }, { description: "Names in SQL" }),
  { description: settings.indexes.effect },
);

export const indexesChange = t.Array(
  t.Object(
    { table: t.String({ maxLength: 63 }), column: t.String({ maxLength: 63 }), kind: t.Optional(kind) },
    strict,
  ),
  {
    maxItems: MOST_INDEXES,
    description: "Columns to index, by their SQL names. Columns that are not listed lose their index",
  },
);

const chosenName = {
  table_id: t.String({ maxLength: 100, description: "Airtable's id of the table" }),
  name: t.String({
    minLength: 1,
    maxLength: 63,
    description: "snake_case, and none of Postgres' reserved words",
    examples: ["due_on"],
  }),
};
const FIELD = { description: "Airtable's id of the field; null for the name of the table" };

export const ownNames = t.Array(t.Object({ ...chosenName, field_id: nullable(t.String(FIELD)) }), {
  description: settings.own_names.effect,
});

export const ownNamesChange = t.Array(
  t.Object({ ...chosenName, field_id: t.Optional(nullable(t.String({ ...FIELD, maxLength: 100 }))) }, strict),
  {
    maxItems: MOST_OWN_NAMES,
    description: "All names of your own. Tables and columns that are not listed get automatic names",
  },
);

const fieldIds = (options: { maxLength?: number }) => ({
  table_id: t.String({ ...options, description: "Airtable's id of the table" }),
  field_id: t.String({ ...options, description: "Airtable's id of the field" }),
});

export const mutedFields = t.Array(t.Object(fieldIds({})), { description: settings.muted_fields.effect });

export const mutedFieldsChange = t.Array(t.Object(fieldIds({ maxLength: 100 }), strict), {
  maxItems: MOST_MUTED_FIELDS,
  description: "All fields whose issues do not count. Issues of fields that are not listed count again",
});
