/** Options of a test's pool that knows Postgres' array types: asking the server costs as much as the login. */
import { ARRAY_TYPES } from "../../core/postgres";

export const KNOWN_TYPES: { fetch_types: false } = { types: ARRAY_TYPES, fetch_types: false } as never;
