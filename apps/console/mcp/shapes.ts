/** The parts of output schemas that several tools have. */
import { z } from "zod";

export const baseInput = z
  .string()
  .max(200)
  .optional()
  .describe("Id or name of the base. Not needed if there is only one: see list_bases");

export const freshnessShape = {
  as_of: z.string().nullable().describe("No change before this time is missing; null before the first sync"),
  lag_ms: z.number().nullable(),
  is_complete: z.boolean().describe("Nothing is known to be missing"),
  reason: z.string().optional().describe("Why it is not complete"),
};
