/** Answer schemas for the calls to Airtable for a base. */
import { t } from "elysia";
import { named, nullable, oneOf, timestamp } from "./parts";

export const callsQuery = t.Object({
  per: t.Optional(
    oneOf(["hour", "day"], {
      description: "Default: hour, for the last 24 hours; day, for the last 30 days",
    }),
  ),
});

const calls = t.Integer({ minimum: 0, examples: [120] });

export const baseCalls = named(
  "BaseCalls",
  t.Object({
    per: oneOf(["hour", "day"]),
    buckets: t.Array(
      t.Object({
        from: timestamp,
        sync: calls,
        client: t.Integer({
          minimum: 0,
          description: "By your applications through the proxy",
          examples: [40],
        }),
        console: t.Integer({
          minimum: 0,
          description: "For links to attachments, and checks of keys",
          examples: [3],
        }),
      }),
      { description: "The oldest first" },
    ),
    clients: t.Array(
      t.Object({
        kind: oneOf(["own", "key", "others"], {
          description: "`own`: the key that the base is synced with; `others`: all that are not listed",
        }),
        key: nullable(t.String({ description: "The first letters of the key", examples: ["patAbCd…"] })),
        calls,
      }),
      { description: "The calls of `client` in the whole time, the most first" },
    ),
  }),
);
