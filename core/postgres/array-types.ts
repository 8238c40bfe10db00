/**
 * Postgres' own array types for the driver, by their OIDs, which are the same on every server. Asking a server for all of
 * its array types costs each pool a statement and some 600 functions: half of those of a process with a thousand pools.
 */
import type { PostgresType } from "postgres";
import { parse } from "postgres-array";

/** For the `types` option of a pool that does not ask its server for types. Elements are as the driver has them. */
export const ARRAY_TYPES = {
  // "char", name, text, xid, bpchar, varchar, time, interval, numeric, timetz, regclass, regtype, uuid, pg_lsn
  texts: arrays([1002, 1003, 1009, 1011, 1014, 1015, 1183, 1187, 1231, 1270, 2210, 2211, 2951, 3221], {
    parse: (text) => text,
    serialize: String,
  }),
  // int2, int4, int8, float4, float8, oid. int8 is a counter wherever we read one, see core/replica/connection.ts.
  numbers: arrays([1005, 1007, 1016, 1021, 1022, 1028], { parse: Number, serialize: String }),
  booleans: arrays([1000], { parse: (text) => text === "t", serialize: (value) => (value ? "t" : "f") }),
  // timestamp, date, timestamptz
  times: arrays([1115, 1182, 1185], {
    parse: (text) => new Date(text),
    serialize: (value) => new Date(value).toISOString(),
  }),
  // json, jsonb
  json: arrays([199, 3807], { parse: JSON.parse, serialize: (value) => JSON.stringify(value) }),
} satisfies Record<string, PostgresType>;

// biome-ignore lint/suspicious/noExplicitAny: as in the driver's own types.
type Element = { parse: (text: string) => any; serialize: (value: any) => string };

function arrays(oids: number[], element: Element): PostgresType {
  return {
    to: oids[0]!,
    from: oids,
    parse: (text: string) => parse(text, element.parse),
    serialize: (value: unknown) => arrayText(value, element),
  };
}

/** @param value a text is one of an array, and stays as it is */
function arrayText(value: unknown, { serialize }: Element): unknown {
  if (!Array.isArray(value)) return value;
  const items = value.map((item: unknown) =>
    item === null ? "null" : `"${serialize(item).replaceAll(/["\\]/g, "\\$&")}"`,
  );
  return `{${items.join(",")}}`;
}
