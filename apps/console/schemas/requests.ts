/** Schemas of requests to the operator. */
import { t } from "elysia";
import { named, nullable, strict, timestamp } from "./parts";

export const newRequest = named(
  "NewOperatorRequest",
  t.Object(
    {
      kind: t.Union([
        t.Literal("region"),
        t.Literal("writable"),
        t.Literal("shared_database"),
        t.Literal("other"),
      ]),
      database_id: t.Optional(
        t.String({ maxLength: 100, description: "For `writable`: the id of the database" }),
      ),
      region: t.Optional(t.String({ maxLength: 40, description: "For `region`: its code" })),
      message: t.Optional(t.String({ maxLength: 2000 })),
    },
    strict,
  ),
  { kind: "region", region: "eu-central-1", message: "Our data must stay in the EU" },
);

export const operatorRequest = named(
  "OperatorRequest",
  t.Object({
    id: t.String(),
    kind: t.String(),
    database_id: nullable(t.String()),
    region: nullable(t.String()),
    message: t.String(),
    state: t.Union([t.Literal("open"), t.Literal("approved"), t.Literal("denied")]),
    answer: t.String({ description: "The operator's answer" }),
    created_at: timestamp,
    decided_at: nullable(timestamp),
  }),
);

export const operatorRequests = t.Array(operatorRequest);
