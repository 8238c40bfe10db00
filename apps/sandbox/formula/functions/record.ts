/**
 * Functions that read the formula's own record.
 */

import { FormulaSyntaxError } from "../../../../core/formula";
import { dateAt } from "../dates";
import { ERROR } from "../types";
import { type Compiled, type Evaluator, type FunctionSpec, fromRow } from "./spec";

export const recordFunctions: Record<string, FunctionSpec> = {
  RECORD_ID: fromRow((row) => row.recordId),
  CREATED_TIME: fromRow((row) => dateAt(row.createdTime, true) ?? ERROR),
  LAST_MODIFIED_TIME: {
    minArgs: 0,
    maxArgs: Number.POSITIVE_INFINITY,
    readsRow: true,
    compile: compileLastModified,
  },
};

/** Its arguments are fields to watch, not values. */
function compileLastModified(args: readonly Compiled[]): Evaluator {
  const fieldIds = args.length === 0 ? undefined : args.map(fieldIdOf);
  return (row) => {
    const ms = row.lastModifiedTime(fieldIds);
    return ms === null ? null : (dateAt(ms, true) ?? ERROR);
  };
}

function fieldIdOf(arg: Compiled): string {
  if (arg.fieldId === undefined) throw new FormulaSyntaxError();
  return arg.fieldId;
}
