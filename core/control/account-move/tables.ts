/**
 * Decides for every table of the control plane whether its rows move with an account, and which rows those are.
 *
 * Rows that foreign keys connect with an account move, unless they are listed here to stay. A table without such a key, and
 * without a rule here, stops a move before it begins, and fails a test.
 */
import { BasetideError } from "../../errors";

/** Tables that no foreign key connects with an account: the column that says whose a row is. */
const OWNED_BY: Record<string, "account_id" | "key"> = {
  audit_log: "account_id",
  quota_blocks: "key",
  quota_callers: "key",
  quota_calls: "key",
  quota_days: "key",
  quota_kinds: "key",
  quota_throttled: "key",
};

/** Tables whose rows stay, and why. */
export const STAYING: Record<string, string> = {
  accepted_keys: "the first request with a key proves it again",
  account_moves: "records the moves of this control plane",
  alert_clock: "of this control plane",
  attempts: "counts attempts of minutes",
  clusters: "servers are registered in each control plane",
  installation: "of this control plane",
  installed_functions: "of this control plane",
  job_holders: "processes of this control plane",
  moved_bases: "what this control plane no longer has",
  notification_addresses: "of this control plane",
  oauth_access_tokens: "clients of agents sign in again, at another address",
  oauth_client_assertions: "proofs of minutes",
  oauth_clients: "clients of agents sign in again, at another address",
  oauth_consents: "clients of agents sign in again, at another address",
  oauth_refresh_tokens: "clients of agents sign in again, at another address",
  oauth_resources: "the address of this control plane",
  quota_minutes: "the last hour",
  quota_epochs: "of this control plane",
  quota_holders: "processes of this control plane",
  quota_keys: "the last seconds; the new rate limiter opens each base after a pause",
  quota_permits: "the last seconds; the new rate limiter opens each base after a pause",
  quota_proxies: "processes of this control plane",
  quota_wants: "the last seconds",
  rate_limits: "counts requests of minutes",
  sessions: "people sign in again, at another address",
  task_attempts: "of work that this control plane has begun",
  used_codes: "codes of seconds",
  verifications: "links of minutes; a new one can be requested",
  watchdog_clock: "of this control plane",
  processes: "processes of this control plane",
};

export interface ForeignKey {
  columns: string[];
  parent: string;
  parentColumns: string[];
}

export interface MovedTable {
  name: string;
  columns: string[];
  /** A column that Postgres numbers: rows get new numbers in the other control plane. */
  identity: string | null;
  keys: ForeignKey[];
}

/** References that no foreign key declares, to a numbered table. */
export const UNDECLARED: Record<string, { column: string; parent: string }> = {
  alert_states: { column: "cursor", parent: "schema_changes" },
};

/** Returns the tables whose rows move, each after those that it refers to. */
export function parentsFirst(shapes: MovedTable[]): MovedTable[] {
  const byName = new Map(shapes.filter(({ name }) => !(name in STAYING)).map((shape) => [shape.name, shape]));
  const ordered = new Set<MovedTable>();
  const visit = (shape: MovedTable, path: string[]) => {
    if (ordered.has(shape)) return;
    if (path.includes(shape.name)) throw new Error(`Tables refer to each other: ${path.join(", ")}`);
    const parents = [...shape.keys.map(({ parent }) => parent), UNDECLARED[shape.name]?.parent ?? ""];
    for (const name of parents) {
      const parent = byName.get(name);
      if (parent && parent !== shape) visit(parent, [...path, shape.name]);
    }
    ordered.add(shape);
  };
  for (const shape of byName.values()) visit(shape, []);
  return [...ordered];
}

/**
 * Returns the condition on `alias`, a row of the table, to belong to the account: $1 is the account's id, $2 are ids of
 * users, and $3 keys of the quota.
 *
 * The key to `accounts` decides where there is one. Otherwise, those to the account's other rows, and only if there is
 * none, that to `users`: a person may be a member of several accounts.
 *
 * @throws BasetideError `internal` if no key leads to an account: it is not decided whether the table's rows move
 */
export function belongs(name: string, shapes: Map<string, MovedTable>, alias = "t"): string {
  if (OWNED_BY[name] === "account_id") return `${alias}.account_id = $1::text`;
  if (OWNED_BY[name] === "key") return `${alias}.key = any ($3::text[])`;
  if (name === "accounts") return `${alias}.id = $1::text`;
  if (name === "users") return `${alias}.id = any ($2::text[])`;
  const keys = shapes.get(name)!.keys.filter(({ parent }) => !(parent in STAYING) && parent !== name);
  const direct = keys.find(({ parent }) => parent === "accounts");
  if (direct) return `${alias}.${direct.columns[0]} = $1::text`;
  const owners = keys.filter(({ parent }) => parent !== "users");
  const ways = (owners.length > 0 ? owners : keys).map(({ columns, parent, parentColumns }) => {
    const inner = `${alias}p`;
    const own = columns.map((column) => `${alias}.${column}`).join(", ");
    const theirs = parentColumns.map((column) => `${inner}.${column}`).join(", ");
    return `(${own}) in (select ${theirs} from ${parent} as ${inner} where ${belongs(parent, shapes, inner)})`;
  });
  if (ways.length === 0)
    throw new BasetideError(
      "internal",
      `It is not decided whether the rows of ${name} move with an account (core/control/account-move/tables.ts)`,
    );
  return `(${ways.join(" or ")})`;
}
