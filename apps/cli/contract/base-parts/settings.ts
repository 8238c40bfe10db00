/** `settings`: those of the base's settings page, except its indexes. */
import { z } from "zod";
import { type ApiSchemas, apiFacts } from "../../client";
import { changeDetails, differing } from "../difference";
import type { BasePart, Changing } from "./part";

type Value = boolean | number | string;
type Values = Record<string, Value | undefined>;

/** What the API accepts as a setting. */
interface Limits {
  type: string;
  minimum?: number;
  maximum?: number;
  values?: readonly string[];
  /** A change reads tables again. */
  isRebuilding?: boolean;
}

const limits: Record<string, Limits> = apiFacts.settings;
const names = Object.keys(limits);

export const settingsPart: BasePart<Values> = {
  key: "settings",
  schema: z.strictObject(
    Object.fromEntries(Object.entries(limits).map(([name, one]) => [name, valueSchema(one).optional()])),
  ),
  read(base) {
    const known = base.settings as unknown as Values;
    // An older service does not have all of them.
    return Object.fromEntries(
      names.filter((name) => known[name] !== undefined).map((name) => [name, known[name]]),
    );
  },
  compare(wanted, base, { path }) {
    const change = differing(wanted, base.settings);
    const changed = Object.keys(change);
    if (changed.length === 0) return undefined;
    return {
      details: changeDetails(change, base.settings, "settings."),
      paths: changed.map((name) => [...path, name]),
      change: change as Changing,
      isRebuilding: changed.some((name) => limits[name]?.isRebuilding),
    };
  },
  connect: (wanted) => ({ settings: wanted as ApiSchemas["NewBase"]["settings"] }),
};

function valueSchema({ type, minimum, maximum, values }: Limits): z.ZodType<Value> {
  if (values) return z.enum(values);
  if (type === "boolean") return z.boolean();
  if (type !== "integer") return z.string();
  return z
    .int()
    .min(minimum ?? Number.MIN_SAFE_INTEGER)
    .max(maximum ?? Number.MAX_SAFE_INTEGER);
}
