/** Members of an account. */
export {
  acceptInvitation,
  changeRole,
  checkRole,
  type Invitation,
  inviteMember,
  linkedInvitations,
  listInvitations,
  listMembers,
  type Member,
  withdrawInvitation,
} from "./members";
export { type Removal, removeMember, removerOf } from "./remove-member";
