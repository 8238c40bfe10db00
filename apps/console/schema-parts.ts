/** Shared parts of request and answer schemas. */
import { t } from "elysia";

/** Unknown properties are rejected: a misspelled setting must not pass for one that was set. */
export const strict = { additionalProperties: false };

export const nullable = <T extends Parameters<typeof t.Union>[0][number]>(type: T) =>
  t.Union([type, t.Null()]);

export const timestamp = t.String({ format: "date-time" });
