/** The account's members in the API: their roles, and the removal of one together with the secrets that they have seen. */
import { t } from "elysia";
import { givenRoles, roles } from "../../../core/control/accounts";
import { changeRole, listMembers, removeMember } from "../../../core/control/members";
import { ofAccount, resource } from "../resource-kit/resource";
import { named, nullable, oneOf, strict, timestamp } from "../schemas/parts";

const API = "/api/v1/members";

const member = named(
  "Member",
  t.Object({
    user_id: t.String(),
    email: t.String(),
    role: oneOf(roles),
    since: timestamp,
  }),
);

const revocations = t.Array(
  t.Object({
    id: t.String(),
    name: t.String(),
    error: nullable(t.String({ description: "Why it failed; null if it succeeded" })),
  }),
);

export const membersResource = resource({
  tag: "Account",
  params: t.Object({ id: t.String({ maxLength: 100, description: "Id of the member's user: usr_…" }) }),
  scope: ofAccount,
  find: async (_, account, { id }) => ({ accountId: account.id, userId: id }),
})
  .all({
    api: `GET ${API}`,
    summary: "Members of the account, the owner first",
    answer: t.Array(member),
    run: ({ db }, account) => listMembers(db, account.id),
  })
  .one({
    api: `PATCH ${API}/:id`,
    summary: "Change a member's role",
    description: "Their sessions and tokens have it from the next request on.",
    raises: ["conflict"],
    body: named("RoleChange", t.Object({ role: oneOf(givenRoles) }, strict), { role: "viewer" }),
    answer: member,
    run: ({ db, actor }, { accountId, userId }, body, { role }) =>
      changeRole(db, { accountId, role, actor }, userId, body.role),
  })
  .one({
    api: `DELETE ${API}/:id`,
    summary: "Remove a member, and optionally revoke shared credentials",
    description:
      "Their sessions and tokens stop working. Database passwords, attachment links and tokens of others are shared by all members, and keep working unless they are revoked in the same call. With `revoke_tokens`, the token of this call is revoked too.",
    raises: ["forbidden", "conflict"],
    body: t.Optional(
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
    ),
    answer: named(
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
    ),
    run: (ctx, { accountId, userId }, body) =>
      removeMember(ctx, { accountId, userId: null, isOwner: true, actor: ctx.actor }, userId, {
        rotateCredentials: body?.rotate_credentials,
        revokeAttachmentLinks: body?.revoke_attachment_links,
        revokeTokens: body?.revoke_tokens,
      }),
  });
