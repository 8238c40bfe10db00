/**
 * API routes for the account's members: lists them, changes a role, and removes a member together with the secrets that the
 * member has seen.
 */
import { Elysia } from "elysia";
import type { ManagementContext } from "../../../core/control/bases";
import { changeRole, listMembers, type Member, removeMember } from "../../../core/control/members";
import { bearerAuth } from "../bearer-auth";
import * as schemas from "../schemas/members";
import { raises } from "../schemas/parts";

export function memberRoutes(ctx: ManagementContext) {
  return new Elysia({ prefix: "/api/v1/members", tags: ["Account"] })
    .use(bearerAuth(ctx.db))
    .get(
      "",
      async ({ account }) => {
        return (await listMembers(ctx.db, account.id)).map(toMemberJson);
      },
      { response: { 200: schemas.members }, detail: { summary: "Members of the account, the owner first" } },
    )
    .patch(
      "/:id",
      async ({ account, actor, role, params, body }) =>
        toMemberJson(await changeRole(ctx.db, { accountId: account.id, role, actor }, params.id, body.role)),
      {
        params: schemas.memberParams,
        body: schemas.roleChange,
        response: { 200: schemas.member },
        detail: {
          summary: "Change a member's role",
          description: "Their sessions and tokens have it from the next request on.",
          ...raises("conflict"),
        },
      },
    )
    .delete(
      "/:id",
      async ({ account, actor, params, body }) => {
        const remover = { accountId: account.id, userId: null, isOwner: true, actor };
        const removal = await removeMember(ctx, remover, params.id, {
          rotateCredentials: body?.rotate_credentials,
          revokeAttachmentLinks: body?.revoke_attachment_links,
          revokeTokens: body?.revoke_tokens,
        });
        return {
          email: removal.email,
          tokens_revoked: removal.tokensRevoked,
          databases: removal.databases,
          attachment_links: removal.attachmentLinks,
          remains: removal.remains,
        };
      },
      {
        params: schemas.memberParams,
        body: schemas.removal,
        response: { 200: schemas.removed },
        detail: {
          summary: "Remove a member, and optionally revoke shared credentials",
          description:
            "Their sessions and tokens stop working. Database passwords, attachment links and tokens of others are shared by all members, and keep working unless they are revoked in the same call. With `revoke_tokens`, the token of this call is revoked too.",
          ...raises("forbidden", "conflict"),
        },
      },
    );
}

function toMemberJson({ userId, email, role, since }: Member) {
  return { user_id: userId, email, role, since: since.toISOString() };
}
