/** The programs that the page "Connect" has instructions for. */
import { codeOf } from "./connect-code";
import { toolOf } from "./connect-tools";

/** What a program needs to connect. */
export interface SqlAccess {
  host: string;
  port: number;
  database: string;
  user: string;
  password: string;
  schema: string;
  /** As libpq names it; null: as the program decides. */
  sslMode: string | null;
  /** Further parameters of the URL. */
  parameters: Record<string, string>;
  /** A table that can be read, as SQL writes it. */
  table: string;
}

export interface ClientGuide {
  /** Text with the password, or with the placeholder for it. */
  secrets?: { id: string; label: string; value: string }[];
  /** What to enter in the tool's form; the password is on the page anyway. */
  fields?: [label: string, value: string][];
  /** A command for a shell. */
  install?: string;
  program?: { file: string; code: string };
  /** In order. */
  steps?: string[];
}

export const clients = {
  url: "URL",
  psql: "psql",
  "postgres-js": "Node.js (postgres.js)",
  pg: "Node.js (pg)",
  python: "Python",
  go: "Go",
  ruby: "Ruby",
  jdbc: "JDBC",
  metabase: "Metabase",
  grafana: "Grafana",
  tableau: "Tableau",
  "power-bi": "Power BI",
  retool: "Retool",
  superset: "Superset",
  excel: "Excel (ODBC)",
} as const;

export type ClientId = keyof typeof clients;

export function isClient(id: unknown): id is ClientId {
  return typeof id === "string" && Object.hasOwn(clients, id);
}

export function guideOf(id: ClientId, access: SqlAccess): ClientGuide {
  return codeOf(id, access) ?? toolOf(id, access);
}
