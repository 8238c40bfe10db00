/** The audit log. */
export { type AuditDetails, type AuditEntry, listChanges, recordChange, trimAudit } from "./audit";
export { type AuditAction, auditActions } from "./audit-actions";
export { countChange, countUserEvent, recordUserEvent, type UserEvent } from "./user-audit";
