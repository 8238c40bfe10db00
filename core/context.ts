/** What a process carries around: the first argument of whatever needs a part of it. */
import type { Sql } from "postgres";
import type { Registry } from "prom-client";
import type { Config } from "./config";
import type { Logger } from "./log";
import type { SecretBox } from "./secrets";

/** A pool on the control plane. int8 arrives as a string. */
export type Db = Sql;

/** Who acts, as the audit log names them. */
export interface Actor {
  kind: "user" | "token" | "operator" | "cli" | "system";
  name: string;
}

export interface Context {
  config: Config;
  /** The control plane. */
  db: Db;
  log: Logger;
  /** Encrypts and decrypts what is kept at rest. */
  secrets: SecretBox;
  metrics: Registry;
  /** On whose behalf; the service's own unless given. */
  actor?: Actor | undefined;
}
