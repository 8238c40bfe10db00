/** The axes of the compatibility matrix, and the expected result of each combination. */
import { POSTGRES_VERSIONS, type PostgresVersion } from "../support/servers/postgres-versions";

export const RIGHTS = ["owner", "createdb createrole", "superuser"] as const;
/** `owner`: of the control plane's database; of one schema in a customer's own database. */
export type Rights = (typeof RIGHTS)[number];

export const WAYS = ["direct", "pgbouncer session", "pgbouncer transaction", "tls alias"] as const;
/** How the service reaches the server. */
export type Way = (typeof WAYS)[number];

export const PURPOSES = ["control plane", "hosted cluster", "own database"] as const;
/** The server's role in the service. */
export type Purpose = (typeof PURPOSES)[number];

export interface Cell {
  version: PostgresVersion;
  rights: Rights;
  way: Way;
}

/** The expected result of a purpose: it works, or it is refused with a message that matches all of `saying`. */
export type Expected = { works: true } | { works: false; saying: RegExp[] };

/** All cells, in the order of the table. */
export const ALL_CELLS: Cell[] = POSTGRES_VERSIONS.flatMap((version) =>
  RIGHTS.flatMap((rights) => WAYS.map((way) => ({ version, rights, way }))),
);

/** Each version, each kind of rights and each kind of connection at least once. */
export const SHORT_CELLS: Cell[] = [
  { version: "15", rights: "owner", way: "direct" },
  { version: "16", rights: "createdb createrole", way: "tls alias" },
  { version: "17", rights: "createdb createrole", way: "pgbouncer session" },
  { version: "18", rights: "superuser", way: "pgbouncer transaction" },
];

export function expectedOf(purpose: Purpose, { rights, way }: Cell): Expected {
  // There, session state (locks, listeners, settings) is lost between two transactions.
  if (way === "pgbouncer transaction") return { works: false, saying: [/transaction/i, /session|direct/i] };
  if (purpose === "hosted cluster" && rights === "owner") {
    return { works: false, saying: [/conflict/, /not allowed to create databases/, /createdb/i] };
  }
  return { works: true };
}

export function nameOf({ version, rights, way }: Cell): string {
  return `Postgres ${version}, ${rights}, ${way}`;
}
