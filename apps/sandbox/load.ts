/**
 * Loads a base from a folder of captured answers: `schema.json` in the meta API's form, and for each table `<table
 * id>.json`, an array of records.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { type BaseInput, buildBase, type RecordInput, type TableInput } from "./build";
import { ControlError } from "./errors";
import type { SandboxBase } from "./model";
import { Random } from "./random";
import type { Sandbox } from "./sandbox";

export interface LoadOptions {
  folder: string;
  /** `frozen` (default) keeps the computed cells as captured, because they are not consistent everywhere. */
  computed?: "frozen" | "live";
  baseId?: string;
  name?: string;
}

/**
 * Loads `folder`. The same folder gets the same base id.
 *
 * @throws ControlError if the folder has no `schema.json` or a file has the wrong form
 */
export function loadBase(sandbox: Sandbox, options: LoadOptions): SandboxBase {
  const { folder, computed = "frozen" } = options;
  const schema = readJson(join(folder, "schema.json")) as { tables?: TableInput[] };
  if (!Array.isArray(schema.tables))
    throw new ControlError(`${join(folder, "schema.json")} has no list \`tables\`.`);
  const input: BaseInput = {
    id: options.baseId ?? idOfFolder(folder, schema.tables),
    name: options.name ?? basename(folder),
    tables: schema.tables.map((table) => ({ ...table, records: recordsOf(folder, table) })),
    computed,
  };
  return buildBase(sandbox, input);
}

function recordsOf(folder: string, table: TableInput): RecordInput[] {
  const file = join(folder, `${table.id}.json`);
  if (!existsSync(file)) return [];
  const records = readJson(file);
  if (!Array.isArray(records)) throw new ControlError(`${file} is not a list of records.`);
  return records as RecordInput[];
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (cause) {
    throw new ControlError(`${file} cannot be read as JSON. Give the folder of a captured base.`, { cause });
  }
}

function idOfFolder(folder: string, tables: TableInput[]): string {
  const ids = tables.map((table) => table.id).join();
  return new Random(
    createHash("sha256")
      .update(`${basename(folder)} ${ids}`)
      .digest("hex"),
  ).id("app");
}
