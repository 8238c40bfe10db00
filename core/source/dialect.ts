/** The HTTP API of a platform as its clients speak it, where the proxy forwards it: what a path asks for, and of which base. */

export type Call =
  | { kind: "read" }
  /** Records are created, updated, upserted or deleted; `ids` are those that path and query name. */
  | { kind: "write"; tableRef: string; ids: string[] }
  | { kind: "upload"; recordId: string; fieldRef: string }
  | { kind: "schema" }
  | { kind: "sync_csv" }
  | { kind: "other" };

export interface Dialect {
  /** The first segment of every path. */
  version: string;
  /** The base whose quota a request counts in, if any; `segments` are below the version, decoded. */
  baseIdOf(segments: readonly string[]): string | undefined;
  /**
   * @param method upper case
   * @param query with its `?`, or empty
   */
  callOf(method: string, segments: readonly string[], query: string): Call;
  /** The segments that hold a name, in which people may have put a slash. */
  namesIn(segments: readonly string[]): number[];
  /** Does the body of a 429 say that the calls of the month are spent? Waiting is of no use then. */
  saysCapSpent(body: string): boolean;
}
