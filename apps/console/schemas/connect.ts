/** Schemas of what connecting a base needs: the key, the source, and the destination. */
import { t } from "elysia";
import { platformFacts } from "../../../core/source";
import { named, nullable, oneOf, strict } from "./parts";
import { selection } from "./selection";
import { plainSettings } from "./settings";

export const apiKey = t.String({
  minLength: 1,
  maxLength: 1000,
  pattern: "^[!-~]+$",
  description: "Airtable API key",
});

export const workspaceId = nullable(
  t.String({ maxLength: 100, description: "Id of the workspace whose cap includes the base's calls: wsp_…" }),
);

export const keyCheck = named(
  "KeyCheck",
  t.Object({ platform: t.String({ maxLength: 50 }), api_key: apiKey }, strict),
  { platform: platformFacts[0]!.id, api_key: "patXXXXXXXXXXXXXX.XXXXXXXX" },
);

const acceptPrivileges = t.Boolean({
  description:
    "Use the URL although its role has more rights than Basetide needs, such as a superuser's. Otherwise, such a URL is refused",
});

const destination = named(
  "Destination",
  t.Union(
    [
      t.Object(
        {
          kind: t.Literal("new"),
          region: t.Optional(
            t.String({ maxLength: 40, description: "Of the cluster; default: the account's" }),
          ),
        },
        { ...strict, title: "A new database for this base" },
      ),
      t.Object(
        {
          kind: t.Literal("existing"),
          database_id: t.String({ maxLength: 100 }),
          schema: t.String({ maxLength: 63 }),
        },
        { ...strict, title: "A schema in one of the account's databases" },
      ),
      t.Object(
        {
          kind: t.Literal("external"),
          url: t.String({ maxLength: 2000 }),
          schema: t.Optional(t.String({ maxLength: 63 })),
          accept_privileges: t.Optional(acceptPrivileges),
        },
        { ...strict, title: "A database that you host" },
      ),
    ],
    { description: "Where to create the replica; default: a new database" },
  ),
);

export const destinationCheck = named(
  "DestinationCheck",
  t.Object(
    {
      url: t.String({ maxLength: 2000 }),
      schema: t.Optional(t.String({ maxLength: 63 })),
      accept_privileges: t.Optional(acceptPrivileges),
    },
    strict,
  ),
  { url: "postgres://basetide:secret@db.example.com:5432/analytics?sslmode=require", schema: "crm" },
);

export const readingUrl = named("ReadingUrl", t.Object({ url: t.String({ maxLength: 2000 }) }, strict), {
  url: "postgres://reporting:secret@db.example.com:5432/analytics?sslmode=require",
});

export const destinationChecks = named(
  "DestinationChecks",
  t.Object({
    is_usable: t.Boolean({ description: "Whether no check found a problem" }),
    checks: t.Array(
      t.Object({
        check: t.String({
          description: "address, connection, pooler, encryption, latency, rights or schema",
        }),
        status: oneOf(["ok", "warning", "problem"]),
        message: t.String(),
        remedy: nullable(
          t.String({ description: "SQL to run on the server, or the change to make in the URL" }),
        ),
      }),
    ),
  }),
);

const sourceBaseId = t.String({ minLength: 1, maxLength: 100, pattern: "^[A-Za-z0-9_-]+$" });

export const sourceBaseKey = named(
  "SourceBaseKey",
  t.Object({ platform: t.String({ maxLength: 50 }), api_key: apiKey, base_id: sourceBaseId }, strict),
  { platform: platformFacts[0]!.id, api_key: "patXXXXXXXXXXXXXX.XXXXXXXX", base_id: "appW4Xn2Yq8Lr5TzK" },
);

export const newBase = named(
  "NewBase",
  t.Object(
    {
      platform: t.String({ maxLength: 50 }),
      api_key: apiKey,
      base_id: sourceBaseId,
      destination: t.Optional(destination),
      settings: t.Optional(t.Partial(t.Object(plainSettings), strict)),
      selection: t.Optional(selection),
      workspace_id: t.Optional(workspaceId),
    },
    strict,
  ),
  { platform: platformFacts[0]!.id, api_key: "patXXXXXXXXXXXXXX.XXXXXXXX", base_id: "appW4Xn2Yq8Lr5TzK" },
);

export const platformList = t.Array(
  named("Platform", t.Object({ id: t.String(), name: t.String(), key_help_url: t.String() })),
);

export const sourceBases = t.Array(
  named("SourceBase", t.Object({ id: t.String(), name: t.String(), permission: t.String() })),
);
