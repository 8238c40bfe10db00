/**
 * Explains, for people, what others' objects refuse: constraints and triggers that the owner of a database has put on our
 * tables, event triggers, and objects with a name that a table of ours needs.
 */
import type postgres from "postgres";
import { cutText } from "../cut-text";
import { BasetideError } from "../errors";

/** SQLSTATE class of constraints: not null, foreign key, unique, check, exclusion. */
const CONSTRAINT_CLASS = "23";
/** A publication cannot send rows by the replica identity that the table has. */
const NOT_PUBLISHABLE = "42P10";
/** The innermost function that failed, in the context that Postgres reports. */
const FUNCTION = /^PL\/pgSQL function (.+?) line \d+/;
/** What the function was running when it failed. */
const STATEMENT = /^SQL (?:statement|expression) "[\s\S]*?"\n(?=PL\/pgSQL function )/;
/** The statement that called the function, if it is DDL: the function is that of an event trigger. */
const CHANGE =
  /^.*\nSQL statement "\s*((?:create|alter|drop|comment|grant|revoke|refresh)\b[\s\S]*?)"(?:\n|$)/i;
/** Of the statement. */
const MOST_SHOWN = 120;
/** Functions of ours are in a schema of this name, or have none. */
const OURS = /^(?:"?[^"]*_swap"?\.|inline_code_block$)/;

/**
 * @returns what refuses the rows or the change, and the remedy; null if only our own code is involved
 */
export function refusal(error: postgres.PostgresError): string | null {
  const { code, message } = error;
  const where = error.where?.replace(STATEMENT, "");
  const table = [error.schema_name, error.table_name].filter(Boolean).join(".");
  const [, raiser] = FUNCTION.exec(where ?? "") ?? [];
  if (raiser && !OURS.test(raiser)) {
    const [, change] = CHANGE.exec(where!) ?? [];
    // Rows are written by functions of ours, which would be in the context.
    if (change !== undefined || !where!.includes("\n")) {
      const what = change === undefined ? "" : ` (${shortened(change)})`;
      return `The function ${raiser}, which an event trigger calls, refuses a change of Basetide's tables${what}: ${message}. Let the function allow the changes of Basetide's role, or drop the event trigger.`;
    }
    return `The function ${raiser}, which a trigger on one of Basetide's tables calls, fails: ${message}. Fix the function, or drop the trigger. It runs with an empty search_path, so table names in it need their schema.`;
  }
  if (code === NOT_PUBLISHABLE && error.detail)
    return `Postgres refuses rows of a published table: ${message}. ${error.detail} Drop the generated column, or choose another replica identity.`;
  if (!code.startsWith(CONSTRAINT_CLASS) || isOurs(error)) return null;
  const what = error.constraint_name
    ? `The constraint ${error.constraint_name}`
    : `The not-null column ${error.column_name}`;
  return `${what} of ${table} rejects values from Airtable: ${message}. Relax or drop the constraint.`;
}

function shortened(statement: string): string {
  const text = statement.replace(/\s+/g, " ");
  return text.length > MOST_SHOWN ? `${cutText(text, MOST_SHOWN)}…` : text;
}

/**
 * Returns `replica_refused` for an error of a change of tables that only others can clear: their objects, the owner of a
 * table, or a right. Undefined for any other: a lock, a change meanwhile, a server or a lease that is gone.
 */
export function asRefusal(error: unknown): BasetideError | undefined {
  if (!(error instanceof BasetideError)) return undefined;
  const { code, message, details } = error;
  if (code === "replica_refused") return error;
  if (code !== "destination_invalid" && code !== "internal") return undefined;
  return new BasetideError("replica_refused", `A table cannot be changed. ${message}`, {
    cause: error,
    details,
  });
}

/** Objects whose names an error of Postgres can be about. */
const NAME_TAKEN: ReadonlySet<unknown> = new Set(["42P07", "42710"]);

/**
 * Returns the error for a table that could not go live for too long.
 *
 * @param error `shape_changed`; the same is returned if no name is the cause
 */
export function nameConflict(table: string, error: BasetideError): BasetideError {
  if (!NAME_TAKEN.has(error.details.sqlState)) return error;
  const taken = error.cause instanceof Error ? error.cause.message : error.message;
  const text = `The table ${table} cannot be shown, because another object has a name that it needs: ${taken}. Rename or drop that object, or choose another name for the table.`;
  return new BasetideError("replica_refused", text, { cause: error, details: error.details });
}

/** Primary keys are ours; their names start with an underscore, unlike those of the source's tables and fields. */
function isOurs({ constraint_name }: postgres.PostgresError): boolean {
  return constraint_name?.startsWith("_") ?? false;
}
