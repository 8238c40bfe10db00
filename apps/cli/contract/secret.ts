/** Secrets in the file: `${NAME}`, the name of a variable of the environment. Their values are never in it. */
import { z } from "zod";

export const secret = z
  .string()
  .regex(
    /^\$\{[A-Za-z_]\w*\}$/,
    `is a secret: write the name of an environment variable, like \${AIRTABLE_API_KEY}`,
  );

/** The variable that a secret names. */
export function variableOf(reference: string): string {
  return reference.slice(2, -1);
}
