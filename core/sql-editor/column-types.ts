/** Names of Postgres' own types by oid, which a result's description contains. */

/** Right-aligned and sorted as numbers. */
export const NUMERIC_TYPES = new Set(["smallint", "integer", "bigint", "numeric", "real", "double", "oid"]);

const SCALARS: Record<number, string> = {
  16: "boolean",
  17: "bytea",
  18: "char",
  19: "name",
  20: "bigint",
  21: "smallint",
  23: "integer",
  25: "text",
  26: "oid",
  114: "json",
  700: "real",
  701: "double",
  1042: "char",
  1043: "varchar",
  1082: "date",
  1083: "time",
  1114: "timestamp",
  1184: "timestamptz",
  1186: "interval",
  1700: "numeric",
  2950: "uuid",
  3802: "jsonb",
};
const ARRAYS: Record<number, number> = {
  1000: 16,
  1003: 19,
  1005: 21,
  1007: 23,
  1009: 25,
  1015: 1043,
  1016: 20,
  1021: 700,
  1022: 701,
  1115: 1114,
  1182: 1082,
  1185: 1184,
  1231: 1700,
  2951: 2950,
};

/** Returns the type's name; empty for a type that an extension or a customer has created. */
export function typeName(oid: number): string {
  const element = ARRAYS[oid];
  return element === undefined ? (SCALARS[oid] ?? "") : `${SCALARS[element]}[]`;
}
