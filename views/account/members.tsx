/** The members of the account, and its invitations. */

import { type CurrentUser, can, givenRoles, roleLabels } from "../../core/control/accounts";
import type { Invitation, Member, Removal } from "../../core/control/members";
import type { Errors } from "../auth/sign-up";

import {
  Badge,
  Button,
  ButtonLink,
  Card,
  CopyField,
  ErrorNote,
  Field,
  Form,
  FormPanel,
  Note,
  SelectField,
  Table,
  Time,
} from "../components";

import { AccountFrame } from "./frame";
import { RemovalNote } from "./remove-member";

export interface MembersProps {
  currentUser: CurrentUser;
  members: Member[];
  invitations: Invitation[];
  email: string;
  /** As chosen for the invitation. */
  role: string;
  errors: Errors<"email">;
  /** The link of an invitation that was just created, if it is not sent by mail. */
  link?: string | undefined;
  /** The result of a removal that also revoked something. */
  removal?: Removal | undefined;
}

const roleOptions = givenRoles.map((role) => ({ value: role, text: roleLabels[role].label }));

export function Members(props: MembersProps) {
  const { currentUser, members, invitations, email, role, errors, link } = props;
  const isOwner = can(currentUser.account.role, "members");
  return (
    <AccountFrame tab="/account/members">
      {link ? (
        <Note tone="warn" title="No mail server is configured: send this link yourself">
          <CopyField id="invitation-link" label="Invitation link" value={link} />
        </Note>
      ) : null}
      {props.removal ? <RemovalNote removal={props.removal} /> : null}
      {errors.form ? <ErrorNote>{errors.form}</ErrorNote> : null}
      <Card id="members" title="Members">
        {isOwner ? (
          <FormPanel
            id="invite"
            action="/account/members"
            button="Invite a member"
            isOpen={errors.email !== undefined}
          >
            <Form action="/account/members" class="stack rows">
              <Field label="E-mail" name="email" type="email" value={email} error={errors.email} required />
              <SelectField
                label="Role"
                name="role"
                value={role}
                options={roleOptions}
                hint={givenRoles.map((one) => `${roleLabels[one].label}: ${roleLabels[one].hint}`).join(" ")}
              />
              <Button>Send invitation</Button>
            </Form>
          </FormPanel>
        ) : null}
        <Table
          caption="Members"
          rows={members}
          columns={(column) => [
            column({ text: "E-mail", isHead: true, class: "wrap" }, (member) => (
              <>
                {member.email} {member.userId === currentUser.userId ? <Badge>You</Badge> : null}
              </>
            )),
            column("Role", (member) =>
              isOwner && member.role !== "owner" ? (
                <RoleForm member={member} />
              ) : (
                roleLabels[member.role].label
              ),
            ),
            column({ text: "Action", isHidden: true, class: "number" }, (member) =>
              member.role !== "owner" && (isOwner || member.userId === currentUser.userId) ? (
                <ButtonLink href={`/account/members/${member.userId}/remove`} kind="quiet" isSmall>
                  {member.userId === currentUser.userId ? "Leave" : "Remove"}
                  <span class="visually-hidden"> {member.email}</span>
                </ButtonLink>
              ) : null,
            ),
          ]}
        />
      </Card>
      {invitations.length > 0 ? <Invitations invitations={invitations} isOwner={isOwner} /> : null}
      {isOwner ? null : (
        <p class="muted">The owner, {currentUser.account.email}, invites and removes members.</p>
      )}
    </AccountFrame>
  );
}

function RoleForm({ member }: { member: Member }) {
  const id = `role-${member.userId}`;
  return (
    <Form action={`/account/members/${member.userId}/role`} class="actions">
      <label class="visually-hidden" for={id}>
        Role of {member.email}
      </label>
      <select id={id} name="role">
        {roleOptions.map(({ value, text }) => (
          <option key={value} value={value} selected={value === member.role}>
            {text}
          </option>
        ))}
      </select>
      <Button isSmall kind="quiet">
        Save<span class="visually-hidden"> the role of {member.email}</span>
      </Button>
    </Form>
  );
}

function Invitations({ invitations, isOwner }: { invitations: Invitation[]; isOwner: boolean }) {
  return (
    <Card id="invitations" title="Invited">
      <Table
        caption="Open invitations"
        rows={invitations}
        columns={(column) => [
          column({ text: "E-mail", isHead: true, class: "wrap" }, (invitation) => invitation.email),
          column("Role", (invitation) => roleLabels[invitation.role].label),
          column("Open until", (invitation) => <Time at={invitation.expiresAt} form="minute" />),
          column({ text: "Action", isHidden: true, class: "number" }, (invitation) =>
            isOwner ? (
              <Form action={`/account/invitations/${invitation.id}/withdraw`}>
                <Button kind="quiet" isSmall>
                  Withdraw<span class="visually-hidden"> the invitation for {invitation.email}</span>
                </Button>
              </Form>
            ) : null,
          ),
        ]}
      />
    </Card>
  );
}
