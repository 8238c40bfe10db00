/**
 * API routes for the account's members: lists them, and removes one together with the secrets that the member has seen.
 */
import { Elysia } from "elysia";
import type { ManagementContext } from "../../../core/control/bases";
import { listMembers, removeMember } from "../../../core/control/members";
import { bearerAuth } from "../bearer-auth";
import * as schemas from "../schemas/members";
import { raises } from "../schemas/parts";

export function memberRoutes(ctx: ManagementContext) {
  return new Elysia({ prefix: "/api/v1/members", tags: ["Account"] })
    .use(bearerAuth(ctx.db))
    .get(
      "",
      async ({ account }) => {
        const members = await listMembers(ctx.db, account.id);
        return members.map(({ userId, email, role, since }) => ({
          user_id: userId,
          email,
          role,
          since: since.toISOString(),
        }));
      },
      { response: { 200: schemas.members }, detail: { summary: "Members of the account, the owner first" } },
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
