/** Request and answer schemas of the API for members. */
import { t } from "elysia";
import { givenRoles, roles } from "../../../core/control/accounts";
import { named, nullable, strict, timestamp } from "./parts";

export const memberParams = t.Object({
  id: t.String({ maxLength: 100, description: "Id of the member's user: usr_…" }),
});

export const member = named(
  "Member",
  t.Object({
    user_id: t.String(),
    email: t.String(),
    role: t.UnionEnum([...roles]),
    since: timestamp,
  }),
);

export const members = t.Array(member);

export const roleChange = named("RoleChange", t.Object({ role: t.UnionEnum([...givenRoles]) }, strict), {
  role: "viewer",
});

export const removal = t.Optional(
  nullable(
    named(
      "RemovalOptions",
      t.Partial(
        t.Object({
          rotate_credentials: t.Boolean({
            description:
              "Rotate the passwords of the account's hosted databases and their SQL users; open connections are closed",
          }),
          revoke_attachment_links: t.Boolean({ description: "Revoke all attachment links of all bases" }),
          revoke_tokens: t.Boolean({
            description: "Revoke all API tokens of the account, including the one in use",
          }),
        }),
        strict,
      ),
      { rotate_credentials: true, revoke_tokens: true },
    ),
  ),
);

const revocations = t.Array(
  t.Object({
    id: t.String(),
    name: t.String(),
    error: nullable(t.String({ description: "Why it failed; null if it succeeded" })),
  }),
);

export const removed = named(
  "MemberRemoval",
  t.Object({
    email: t.String(),
    tokens_revoked: t.Integer(),
    databases: revocations,
    attachment_links: revocations,
    remains: t.Array(
      t.String({ description: "Credentials that the member may have seen and that still work" }),
    ),
  }),
);
