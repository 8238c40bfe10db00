/** What forms of requests and answers are made of. */
import { t } from "elysia";

/** Unknown properties are refused: a misspelt setting must not be taken for one that was set. */
export const strict = { additionalProperties: false };

export const nullable = <T extends Parameters<typeof t.Union>[0][number]>(type: T) =>
  t.Union([type, t.Null()]);

export const timestamp = t.String({ format: "date-time" });
