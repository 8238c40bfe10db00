/** Explains, for people, refusals by constraints and triggers that the owner of a database has put on our tables. */
import type postgres from "postgres";

/** SQLSTATE class of constraints: not null, foreign key, unique, check, exclusion. */
const CONSTRAINT_CLASS = "23";
/** The innermost function that failed, in the context that Postgres reports. */
const FUNCTION = /^PL\/pgSQL function (.+?) line \d+/;
/** Functions of ours are in a schema of this name. */
const OURS = /^"?[^"]*_swap"?\./;

/**
 * @param error of a statement that writes rows
 * @returns what refuses the rows, and the remedy; null if only our own code is involved
 */
export function refusal(error: postgres.PostgresError): string | null {
  const { code, message, where } = error;
  const table = [error.schema_name, error.table_name].filter(Boolean).join(".");
  const [, raiser] = FUNCTION.exec(where ?? "") ?? [];
  if (raiser && !OURS.test(raiser)) {
    return `The function ${raiser}, which a trigger on one of Basetide's tables calls, fails: ${message}. Fix the function, or drop the trigger. It runs with an empty search_path, so table names in it need their schema.`;
  }
  if (!code.startsWith(CONSTRAINT_CLASS) || isOurs(error)) return null;
  const what = error.constraint_name
    ? `The constraint ${error.constraint_name}`
    : `The not-null column ${error.column_name}`;
  return `${what} of ${table} rejects values from Airtable: ${message}. Relax or drop the constraint.`;
}

/** Primary keys are ours; their names start with an underscore, unlike those of the source's tables and fields. */
function isOurs({ constraint_name }: postgres.PostgresError): boolean {
  return constraint_name?.startsWith("_") ?? false;
}
