/**
 * Every function of the language, by its name in capitals. Other names are rejected.
 */
import { dateFunctions } from "./date";
import { logicFunctions } from "./logic";
import { numberFunctions } from "./number";
import { recordFunctions } from "./record";
import type { FunctionSpec } from "./spec";
import { textFunctions } from "./text";

export type { Compiled, Evaluator } from "./spec";

export const functions: ReadonlyMap<string, FunctionSpec> = new Map(
  [logicFunctions, numberFunctions, textFunctions, dateFunctions, recordFunctions].flatMap(Object.entries),
);
