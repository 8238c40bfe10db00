/** The dependencies of a process: the first argument of functions that need a part of them. */
import type { Sql } from "postgres";
import type { Registry } from "prom-client";
import type { Config } from "./config";
import type { Logger } from "./log";
import type { SecretBox } from "./secrets";

/** A pool on the control plane. int8 arrives as a string. */
export type Db = Sql;

/** The actor of a change, as the audit log names it. */
export interface Actor {
  kind: "user" | "token" | "operator" | "cli" | "system";
  name: string;
}

export interface Context {
  config: Config;
  /** The control plane. */
  db: Db;
  log: Logger;
  /** Encrypts and decrypts stored secrets. */
  secrets: SecretBox;
  metrics: Registry;
  /** The actor on whose behalf the work is done; the service itself unless given. */
  actor?: Actor | undefined;
}
