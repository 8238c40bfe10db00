/** The limits that tests of the quota go by, as SQL takes them: those of the platform that there is. */
import { sqlLimitsOf } from "../../core/limiter/limits";

export const LIMITS = sqlLimitsOf("airtable:app");
