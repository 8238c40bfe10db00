/** A platform's HTTP API as seen by the proxy that forwards it: what a request means, and which base it is for. */

export type Call =
  | { kind: "read" }
  /** Records are created, updated, upserted or deleted; `ids` are those in the path and the query. */
  | { kind: "write"; tableRef: string; ids: string[] }
  | { kind: "upload"; recordId: string; fieldRef: string }
  | { kind: "schema" }
  | { kind: "sync_csv" }
  | { kind: "other" };

/** A refusal in SQL. */
export interface SqlRefusal {
  sqlstate: string;
  hint?: string;
}

export interface Dialect {
  /** The first segment of every path. */
  version: string;
  /** The base in whose quota a request counts, if any; `segments` are below the version, decoded. */
  baseIdOf(segments: readonly string[]): string | undefined;
  /**
   * @param method upper case
   * @param query with its `?`, or empty
   */
  callOf(method: string, segments: readonly string[], query: string): Call;
  /** Returns the indexes of the segments that hold a name, which may contain a slash. */
  namesIn(segments: readonly string[]): number[];
  /** Does the body of a 429 say that the month's calls are used up? Retrying is then useless. */
  saysCapSpent(body: string): boolean;
  /** Returns what a refused write is in SQL, by its type of error and its message; undefined if the type is not known. */
  sqlRefusalOf(type: string, message: string): SqlRefusal | undefined;
}
