/** The settings of a base in requests and answers of the management API, generated from the table of settings. */
import { t } from "elysia";
import { MOST_INDEXES, type SettingsOfType, settingList, settings } from "../../../core/control/bases";
import { strict } from "./parts";

type PlainSettings = Record<SettingsOfType<"boolean">, ReturnType<typeof t.Boolean>> &
  Record<SettingsOfType<"integer">, ReturnType<typeof t.Integer>>;

/** All but `indexes`, which has another form in requests than in answers. */
export const plainSettings = Object.fromEntries(
  settingList
    .filter(({ type }) => type !== "indexes")
    .map((setting) => {
      const description = `${setting.effect} Default: ${setting.default}.`;
      const examples = [setting.default];
      if (setting.type !== "integer") return [setting.name, t.Boolean({ description, examples })];
      const { minimum, maximum } = setting;
      return [setting.name, t.Integer({ minimum, maximum, description, examples })];
    }),
) as PlainSettings;

const kind = t.UnionEnum(["default", "trigram"], {
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
