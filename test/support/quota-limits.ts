/** The limits that tests of the quota use, in the form of SQL: those of the only platform. */
import { sqlLimitsOf } from "../../core/limiter/limits";

export const LIMITS = sqlLimitsOf("airtable:app");
