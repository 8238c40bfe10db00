/**
 * Decides whether a base must be read again before its next sync. One query for all bases of the worker finds what
 * people have changed (`SettingsWatch`); everything else about a base is changed by its own syncs.
 */
import type { SyncedBase, SyncFacts } from "../host";
import { MOST_PATIENCE_MS } from "../pacing";

/** What people may change, of a base as it was read or as its syncs left it. */
type Changeable = Pick<
  SyncedBase,
  "state" | "settings" | "database" | "resyncRequestedAt" | "attachmentKeyVersion"
>;

/**
 * While a base is synced, facts are read every second. Old ones mean that the base was at rest, that the control plane
 * does not answer, or that this process was held up.
 *
 * Returns whether the facts show nothing that differs from `base`. A change after they were read interrupts the sync
 * that is running then, if it must.
 *
 * @param factsAgeMs how long ago the facts arrived
 */
export function isAsRead(base: Changeable, facts: SyncFacts | undefined, factsAgeMs: number): boolean {
  return (
    facts !== undefined &&
    factsAgeMs <= MOST_PATIENCE_MS &&
    facts.state === base.state &&
    facts.databaseId === base.database.id &&
    facts.attachmentKeyVersion === base.attachmentKeyVersion &&
    facts.resyncRequestedAt?.getTime() === base.resyncRequestedAt?.getTime() &&
    Bun.deepEquals(facts.settings, base.settings)
  );
}
