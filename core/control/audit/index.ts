/** The audit log. */
export { type AuditDetails, type AuditEntry, listChanges, recordChange } from "./audit";
export { type AuditAction, auditActions } from "./audit-actions";
export {
  type AuditActor,
  type AuditFilter,
  type AuditKind,
  auditKinds,
  listActors,
  listAuditedBases,
} from "./filter";
export { type AuditSubject, findSubjects } from "./subjects";
export { countChange, countUserEvent, recordUserEvent, type UserEvent } from "./user-audit";
