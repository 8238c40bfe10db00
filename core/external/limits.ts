/** Resource limits of a customer's server in the gateway and in the process behind it. */

/** Bytes of one message, before the login is complete and after it. */
export const LOGIN_MESSAGE_BYTES = 64 * 1024;
export const MESSAGE_BYTES = 4 * 1024 * 1024;
/** Messages until the login is complete. */
export const LOGIN_MESSAGES = 200;
/** Total of all answers up to a ReadyForQuery. Our largest are catalogs and lists of ids: a few MB. */
export const RESULT_BYTES = 32 * 1024 * 1024;
/** Of one answer: a list of ids has as many as the table, and is read in parts. */
export const RESULT_ROWS = 100_000;
/** Bytes of one value that the driver parses, which blocks its process: for a fifth of a second at most. */
export const JSON_BYTES = 1024 * 1024;
export const OTHER_BYTES = 256 * 1024;
/** Nested brackets: deep nesting takes longest to parse, a second for 1.5 MB on a busy machine. */
export const JSON_DEPTH = 100;
/** Notices, notifications and parameters up to a ReadyForQuery; notices are not used, so the gateway drops them. */
export const ASIDE_BYTES = 8 * 1024 * 1024;
/** Bytes of results and unfinished messages of all connections together; above, the largest connection is closed. */
export const HELD_BYTES = 128 * 1024 * 1024;

/** From the start of the connection until the server accepts statements, ms. */
export const LOGIN_MS = 9000;
/** Longest time to complete a message, ms. */
export const MESSAGE_MS = 60_000;
/** Longest silence while the server owes an answer, ms: building an index takes minutes. */
export const SILENCE_MS = 15 * 60_000;
/** Longest time from a request to its ReadyForQuery, ms, however much the server sends meanwhile. */
export const REQUEST_MS = 60 * 60_000;

/** SCRAM iterations: Postgres uses 4,096 unless configured otherwise. */
export const SCRAM_ROUNDS = 100_000;
/** Maximum columns of a table or result in Postgres. */
export const MAX_COLUMNS = 1664;
