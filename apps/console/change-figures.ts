/** What a resync or a change of settings costs, for the questions before it. */
import type { Base, ChangeEffect } from "../../core/control/bases";
import { counted } from "../../core/format";
import type { ConsoleContext } from "./page-kit";

/** For a platform that is no longer offered. */
const USUAL_PAGE = 100;

/** Records per call. */
export function pageSizeOf({ platforms }: Pick<ConsoleContext, "platforms">, base: Base): number {
  return platforms.find(({ id }) => id === base.platform)?.limits.pageSize ?? USUAL_PAGE;
}

/** `1,021 records in 4 tables, about 15 calls`. */
export function inFigures({ tables, records, calls }: ChangeEffect): string {
  return `${counted(records, "record")} in ${counted(tables, "table")}, about ${counted(calls, "call")}`;
}
