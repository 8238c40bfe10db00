/** What a server that a customer hosts may cost the gateway and the process behind it. */

/** Bytes of one message, before the login is complete and after it. */
export const LOGIN_MESSAGE_BYTES = 64 * 1024;
export const MESSAGE_BYTES = 4 * 1024 * 1024;
/** Messages until the login is complete. */
export const LOGIN_MESSAGES = 200;
/** Of all answers up to a ReadyForQuery. The largest of ours are catalogs and lists of ids: a few MB. */
export const RESULT_BYTES = 32 * 1024 * 1024;
export const RESULT_ROWS = 100_000;
/** Of one value that the driver takes apart, which holds up its process: at most a fifth of a second. */
export const JSON_BYTES = 1024 * 1024;
export const OTHER_BYTES = 256 * 1024;
/** Brackets within brackets: deep nesting is what takes longest, a second for 1.5 MB on a busy machine. */
export const JSON_DEPTH = 100;
/** Notices and parameters up to a ReadyForQuery; nothing reads notices, so they end in the gateway. */
export const ASIDE_BYTES = 8 * 1024 * 1024;
/** Bytes of results and unfinished messages of all connections together; above, the largest is cut. */
export const HELD_BYTES = 128 * 1024 * 1024;

/** From the connection's start until the server takes statements, ms. */
export const LOGIN_MS = 9000;
/** A message that has begun is complete within this, ms. */
export const MESSAGE_MS = 60_000;
/** Longest silence while the server owes an answer, ms: building an index takes minutes. */
export const SILENCE_MS = 15 * 60_000;
/** Longest time from a request to its ReadyForQuery, ms, however much the server sends meanwhile. */
export const REQUEST_MS = 60 * 60_000;

/** Rounds of SCRAM: Postgres asks for 4,096 unless set otherwise. */
export const SCRAM_ROUNDS = 100_000;
/** Columns of a table or result in Postgres. */
export const MAX_COLUMNS = 1664;
