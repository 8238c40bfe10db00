/**
 * A part of a base in the file: `settings`, `indexes`, and so on.
 *
 * To add one, write a file like those next to this one and name it in `index.ts`: the file's schema, the plan, `pull` and
 * `apply` follow from it.
 */
import type { z } from "zod";
import type { ApiSchemas } from "../../client";
import type { Path } from "../parse";
import type { Chosen } from "../selection/chosen";
import type { AccountState } from "../state";

export interface BasePart<Value = unknown> {
  /** Its key in an entry of `bases`. */
  key: string;
  schema: z.ZodType<Value>;
  /** What the base has, as `pull` writes it; undefined: nothing is written. */
  read(base: ApiSchemas["Base"], state: AccountState): unknown;
  /** Whether what people wrote stays as it is on `pull`, although it differs. */
  isOwn?(written: Value, base: ApiSchemas["Base"], state: AccountState): boolean;
  /** Whether the comparison needs the tables that the base has in Airtable, which cost it a call. */
  needsTables?(wanted: Value, base: ApiSchemas["Base"]): boolean;
  /** What must change so that the base has the wanted value. */
  compare(wanted: Value, base: ApiSchemas["Base"], context: PartContext): Difference | undefined;
  /** Its part of the request that connects the base. */
  connect(wanted: Value, context: PartContext): Connecting;
}

export interface PartContext {
  /** Of this part in the file. */
  path: Path;
  state: AccountState;
  /** The names of the workspaces that the file creates or keeps. */
  workspaces: readonly string[];
  /** Reports what makes the file impossible to apply. */
  problem: (path: Path, message: string) => void;
}

export interface Difference {
  /** `settings.live: false -> true` */
  details: string[];
  /** The lines that differ. */
  paths: Path[];
  change: Changing;
  /** Tables are read again, or something is dropped. */
  isRebuilding?: boolean;
}

/** Requests to the API; a workspace has its name, because it may be created by an earlier step. */
export type Changing = ApiSchemas["BaseChange"] & {
  workspace?: string | null;
  selection?: ApiSchemas["Selection"];
};
export type Connecting = Partial<ApiSchemas["NewBase"]> & {
  workspace?: string | null;
  /** By names or ids: the tables are known once there is a key. */
  chosen?: Chosen;
};
