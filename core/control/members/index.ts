/** Members of an account. */
export {
  acceptInvitation,
  changeRole,
  checkRole,
  findInvitation,
  type Invitation,
  inviteMember,
  listInvitations,
  listMembers,
  type Member,
  withdrawInvitation,
} from "./members";
export { type Removal, removeMember, removerOf } from "./remove-member";
