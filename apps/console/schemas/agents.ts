/** Request and answer schemas of the API for agents. */
import { t } from "elysia";
import { named, nullable, strict, timestamp } from "./parts";

export const agentParams = t.Object({
  id: t.String({ maxLength: 100, description: "Id of the agent: agt_…" }),
});

const agentBase = t.Object({
  base_id: t.String(),
  name: t.String(),
  tables: nullable(
    t.Array(t.String(), { description: "Airtable's ids of the tables that it may read; null: all" }),
  ),
  hidden_fields: t.Array(t.String(), { description: "Airtable's ids of fields that it may not read" }),
  private_fields: t.Boolean({
    description: "It may read fields with e-mail addresses, phone numbers, people and attachments",
  }),
});

export const agent = named(
  "Agent",
  t.Object({
    id: t.String(),
    name: t.String(),
    may_propose: t.Boolean({ description: "It may propose changes, which a member must approve" }),
    created_by: t.String({ description: "E-mail address of the user, or name of the token, who created it" }),
    created_at: timestamp,
    has_token: t.Boolean({ description: "It has a token that works" }),
    last_used_at: nullable(t.String({ format: "date-time", description: "Accurate to an hour" })),
    bases: t.Array(agentBase),
  }),
);

export const agents = t.Array(agent);

export const newAgent = named(
  "NewAgent",
  t.Object(
    {
      name: t.String({ minLength: 1, maxLength: 60, description: "Unique in the account, ignoring case" }),
      may_propose: t.Optional(t.Boolean({ default: false })),
      bases: t.Array(
        t.Object(
          {
            base_id: t.String({ maxLength: 100 }),
            tables: t.Optional(
              nullable(
                t.Array(t.String({ maxLength: 500 }), {
                  maxItems: 1000,
                  description: "SQL names, names in Airtable, or ids; absent or null: all",
                }),
              ),
            ),
            hidden_fields: t.Optional(
              t.Array(t.String({ maxLength: 1000 }), {
                maxItems: 1000,
                description: "`table.column` with SQL names or names in Airtable, or ids of fields",
              }),
            ),
            private_fields: t.Optional(t.Boolean({ default: false })),
          },
          strict,
        ),
        { minItems: 1, maxItems: 100 },
      ),
    },
    strict,
  ),
  { name: "Claude", bases: [{ base_id: "bas_0123456789abcdefghjk" }] },
);

export const createdAgent = named(
  "CreatedAgent",
  t.Object({
    agent,
    token: t.String({ description: "It cannot be read again later" }),
    url: t.String({ description: "The address that the client connects to" }),
  }),
);

export const renewedToken = named("RenewedToken", t.Object({ token: t.String(), url: t.String() }));

export const agentCalls = t.Array(
  named(
    "AgentCall",
    t.Object({
      called_at: timestamp,
      tool: t.String(),
      base_id: nullable(t.String()),
      ms: t.Integer(),
      rows: nullable(t.Integer()),
      error_code: t.String({ description: "Empty if it succeeded" }),
    }),
  ),
);
