/**
 * Removes a member: shows what ends with it, what the member may have seen, and what can be revoked in the same step.
 */

import type { CurrentUser } from "../../core/control/accounts";
import type { Member, Removal } from "../../core/control/members";
import { Button, ButtonLink, Card, Form, Note, Toggle } from "../components";
import { AccountFrame } from "./frame";

export function RemoveMember({ currentUser, member }: { currentUser: CurrentUser; member: Member }) {
  const isSelf = member.userId === currentUser.userId;
  return (
    <AccountFrame tab="/account/members">
      <Card id="remove" title={isSelf ? "Leave this account" : `Remove ${member.email}`}>
        <ul class="bullets">
          {isSelf ? (
            <>
              <li>
                You will lose access to this account, and the API tokens that you created will stop working.
              </li>
              <li>The owner can rotate the database passwords that you have seen.</li>
            </>
          ) : (
            <>
              <li>
                They will lose access to this account, and the API tokens that they created will stop working.
              </li>
              <li>
                All members share database passwords and attachment links, and may have shared API tokens with
                each other. Any that this member has seen keep working unless you revoke them here.
              </li>
            </>
          )}
        </ul>
        <Form action={`/account/members/${member.userId}/remove`} class="stack rows">
          {isSelf ? null : <Options />}
          <div class="actions">
            <Button kind="danger">{isSelf ? "Leave" : "Remove member"}</Button>
            <ButtonLink href="/account/members">Cancel</ButtonLink>
          </div>
        </Form>
      </Card>
    </AccountFrame>
  );
}

function Options() {
  return (
    <>
      <Toggle
        name="rotate_credentials"
        label="Rotate database passwords"
        checked={false}
        hint="Creates new passwords for all databases that Basetide hosts for this account, and for their SQL users, and closes open connections. Update your apps afterwards."
      />
      <Toggle
        name="revoke_attachment_links"
        label="Revoke attachment links"
        checked={false}
        hint="All attachment links of all bases stop working. New ones are written to the databases."
      />
      <Toggle
        name="revoke_tokens"
        label="Revoke all API tokens"
        checked={false}
        hint="Including yours. Otherwise only the tokens that they created are revoked."
      />
    </>
  );
}

/** The result of a removal. */
export function RemovalNote({ removal }: { removal: Removal }) {
  const { email, tokensRevoked, databases, attachmentLinks, remains } = removal;
  const done = (all: Removal["databases"]) => all.filter(({ error }) => error === null).length;
  const failed = [...databases, ...attachmentLinks].filter(({ error }) => error !== null);
  return (
    <Note tone={failed.length > 0 ? "warn" : "good"} title={`${email} was removed`}>
      <ul class="bullets">
        <li>API tokens revoked: {tokensRevoked}</li>
        {databases.length > 0 ? <li>Database passwords rotated: {done(databases)}</li> : null}
        {attachmentLinks.length > 0 ? <li>Bases with links revoked: {done(attachmentLinks)}</li> : null}
        {failed.map(({ id, name, error }) => (
          <li key={id} class="wrap">
            <bdi>{name}</bdi>: {error}
          </li>
        ))}
        {remains.map((text) => (
          <li key={text} class="wrap">
            Still works: {text}
          </li>
        ))}
      </ul>
    </Note>
  );
}
