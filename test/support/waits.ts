/**
 * Every loop in `core` and `apps` that may wait or try again without end, as `findWaits` finds them: what ends it, and
 * where it shows that it goes on. A loop of a lease ends with its signal: the worker's stop, the end of the lease, a
 * pause, a deletion or a lost lease.
 */

export interface Wait {
  /** The file, and the function in it. */
  at: string;
  end: string;
  report: string;
}

const lease = (report: string) => ({ end: "the lease's signal", report });
const process = (report: string) => ({ end: "the process stops", report });
const page = (report: string) => ({ end: "the last page", report });

export const waits: Wait[] = [
  // Timers of processes.
  { at: "core/async/repeat.ts repeat", ...process("what the caller does with a failure; mostly a log") },
  {
    at: "core/control/placement/watchdog.ts startWatchdog.lookIn",
    ...process("log and metrics of clusters"),
  },
  { at: "core/external/gateway/main.ts (module)", ...process("sessions that are late are closed") },
  {
    at: "core/external/gateway-process.ts startGatewayProcess",
    end: "the gateway's exit",
    report: "log: the gateway is killed when it misses beats",
  },
  {
    at: "core/http/connections/pool.ts ConnectionPool.#startTimer",
    end: "no connection is open",
    report: "metrics",
  },
  {
    at: "core/http/incoming-body.ts IncomingBody.whole",
    end: "the body's end or its deadline",
    report: "the client's answer",
  },
  {
    at: "core/http/incoming-body.ts IncomingBody.#check",
    end: "the body's end or its deadline",
    report: "the client's answer",
  },
  { at: "core/http/listen.ts listen.stop", end: "the drain time", report: "connections are cut off" },
  { at: "core/net/live-socket.ts liveSocket", end: "no socket is open", report: "ETIMEDOUT of the socket" },
  {
    at: "core/replica/connection-budget.ts ConnectionBudget.#recoverSoon",
    end: "no connection waits: each turn adds one",
    report: "metric of waiting connections",
  },
  {
    at: "core/replica/grant-columns.ts settled",
    end: "every relation that differs is locked",
    report: "the agent's call",
  },
  {
    at: "core/control/bases/settings-watch.ts SettingsWatch.#schedule",
    end: "no base is held",
    report: "log",
  },
  { at: "core/sync/pacing/budget-watch.ts BudgetWatch.#poll", end: "no base is held", report: "log" },
  { at: "apps/up/life.ts startLife", ...process("the sandbox's records") },
  { at: "apps/worker/freeze-watch.ts watchFreezes", ...process("none: it only measures") },
  {
    at: "apps/worker/isolated-child.ts startChild",
    end: "the child's exit",
    report: "log: the child is frozen",
  },
  {
    at: "apps/worker/housekeeping.ts trimQuota",
    end: "no key was unused for a day: each statement deletes a hundred",
    report: "log when it is done",
  },

  // Timers of one operation.
  {
    at: "core/proxy/repair-loop.ts startRepairLoop.repair",
    end: "its repair ends",
    report: "none: it extends the claim",
  },
  {
    at: "core/proxy/rereads.ts Rereads.#readOnce",
    end: "its request is sent or fails",
    report: "the write's answer",
  },
  {
    at: "core/replica/row-images.ts cancelLate.late",
    end: "its statement ends",
    report: "the caller's error",
  },
  {
    at: "core/control/base-move/copy-writes.ts writtenElsewhere",
    end: "the move ends",
    report: "`take` reports failures",
  },

  // Batches, and counts.
  { at: "core/alerts/observe.ts seenBases", ...page("log of the evaluation") },
  {
    at: "core/alerts/start.ts startAlerts.deliverEach",
    end: "no message is due",
    report: "each message's state",
  },
  { at: "core/control/setup/encryption.ts rowsOf", ...page("the command's output") },
  {
    at: "core/limiter/metered-source.ts MeteredSource.listByIds",
    ...page("`source_bad_answer` for a list without end"),
  },
  {
    at: "core/attachments/record-queue.ts RecordQueue.#readAll",
    end: "nothing waits",
    report: "each waiter's error",
  },
  {
    at: "core/proxy/repairs.ts Repairs.flush",
    end: "none is in memory; an error ends it",
    report: "metric of repairs",
  },
  {
    at: "core/control/onboarding/draft-workspace.ts createNamedWorkspace",
    end: "a free name",
    report: "the form",
  },
  {
    at: "core/sync/state/fingerprints.ts Fingerprints.#probe",
    end: "a free slot: the table is never full",
    report: "none",
  },
  {
    at: "core/formula/parser.ts Parser.expression",
    end: "the end of the formula",
    report: "the formula's error",
  },
  { at: "apps/sandbox/schema-edit.ts freeFieldName", end: "a free name", report: "none" },
  { at: "apps/proxy/change-sets/base-calls.ts BaseCalls.#list", ...page("the change set") },
  {
    at: "apps/proxy/change-sets/carry-out.ts carryOut",
    end: "every operation has a result; what could not be sent for a day is not applied",
    report: "`problem` of the change set",
  },
  {
    at: "apps/proxy/change-sets/carry-out.ts sendInTurn",
    end: "each turn sends at least one operation of 100 at most",
    report: "the change set",
  },
  {
    at: "apps/proxy/change-sets/hold.ts holdSet",
    end: "what holds the set is disposed of",
    report: "log; the set is let go of after LET_GO_MS without a renewal",
  },
  { at: "apps/proxy/path-traversal.ts hasTraversal", end: "MAX_ESCAPES", report: "the answer" },
  {
    at: "core/proxy/replica-handle.ts ReplicaHandle.answer",
    end: "MAX_TRIES, or tables read just now",
    report: "the read's answer",
  },
  {
    at: "core/proxy/show-write.ts tableOf",
    end: "MAX_TRIES",
    report: "repairs: the indicator, once a write waits",
  },
  {
    at: "core/replica/catalog-readers.ts CatalogReaders.change",
    end: "MOST_TRIES, then whatever is read",
    report: "log of the sync",
  },
  {
    at: "core/replica/catalog-readers.ts CatalogReaders.#settle",
    end: "six graces of 10 s for each session",
    report: "schema problem after 30 s",
  },
  { at: "core/replica/install.ts installReplica", end: "LOCK_TRIES", report: "the base's error" },
  {
    at: "core/replica/merge.ts sendTable",
    end: "withinMs, and no rows are left",
    report: "none: it is tried again",
  },
  { at: "core/replica/provision.ts overRaces", end: "MAX_ATTEMPTS", report: "the caller's error" },
  {
    at: "core/sync/engine/live-ids.ts liveIds",
    end: "MANY_TRIES renames of the table",
    report: "the table's failure",
  },
  {
    at: "core/sync/engine/reader.ts restarting",
    end: "the caller's number of attempts",
    report: "the base's error",
  },
  {
    at: "core/sync/engine/schema-tracker.ts SchemaTracker.refresh",
    end: "one check that was asked for since",
    report: "schema problem",
  },
  {
    at: "core/sync/engine/schema-tracker.ts SchemaTracker.refreshTogether",
    end: "MOST_PATIENCE_MS after the last check",
    report: "the table's progress",
  },
  {
    at: "core/sync/engine/schema-tracker.ts SchemaTracker.reload",
    end: "one read of the catalog",
    report: "schema problem",
  },
  {
    at: "core/sync/engine/schema-tracker.ts SchemaTracker.#applySchema",
    end: "its tries for busy tables, MAX_PLANS",
    report: "schema problem",
  },
  {
    at: "core/sync/engine/schema-tracker.ts SchemaTracker.#applyAnswer",
    ...lease("the schema's error, or the run's"),
  },
  { at: "core/sync/engine/sync-base.ts syncTables", end: "MAX_ROUNDS", report: "the base's error" },
  { at: "core/sync/engine/sync-base.ts syncTable", end: "MAX_SHAPES", report: "the base's error" },
  {
    at: "core/sync/engine/write-records.ts onLiveTable",
    end: "MAX_SHAPES; each index is dropped once",
    report: "the base's error",
  },
  {
    at: "core/sync/modes/live/feed.ts LiveFeed.#read",
    end: "a confirmed webhook, or MAX_REPLACEMENTS",
    report: "feed is `failing`",
  },
  { at: "core/sync/modes/live/read-feed.ts readToEnd", ...page("indicator: the feed was not read") },
  {
    at: "apps/cli/client/index.ts sendPatiently",
    end: "RETRIES, and MAX_WAIT_MS each",
    report: "the command's error",
  },

  // Deadlines.
  {
    at: "core/control/account-move/proxies.ts requireProxies",
    end: "LATE_MS",
    report: "the command's error",
  },
  { at: "core/control/jobs/jobs-of-base.ts untilReleased", end: "its time limit", report: "its result" },
  { at: "core/external/gateway.ts Gateway.#running", end: "START_MS", report: "the connection's error" },
  {
    at: "core/external/gateway/pull.ts Pull.takeThrough",
    end: "the connection's end, or the time for its login",
    report: "the connection's error",
  },
  {
    at: "core/external/gateway/pull.ts Pull.#have",
    end: "the connection's end, or the time for its login",
    report: "the connection's error",
  },
  {
    at: "core/limiter/metered-source.ts MeteredSource.send",
    end: "the caller's attempts; 10 s for the control plane",
    report: "the base's error",
  },
  {
    at: "core/control/base-move/move-base.ts copyLateWrites",
    end: "its grace",
    report: "the command's error",
  },
  {
    at: "apps/proxy/caller.ts admit",
    end: "UPSTREAM_TIMEOUT_MS, or the client leaves",
    report: "the answer",
  },
  {
    at: "apps/up/postgres/embedded-postgres.ts takeLockOrServer",
    end: "OWNER_MS",
    report: "the command's error",
  },
  {
    at: "apps/up/postgres/embedded-postgres.ts startOnFreePort",
    end: "ORPHANS_MS; a port that is free",
    report: "the command's error",
  },
  { at: "apps/up/postgres/postmaster.ts startPostmaster", end: "START_MS", report: "the command's error" },
  {
    at: "apps/up/postgres/postmaster.ts stopPid",
    end: "its time, for each signal",
    report: "none: the last one is SIGKILL",
  },

  // The console.
  {
    at: "apps/console/auth/auth.ts createAuth.settled",
    end: "every mail is sent or has failed",
    report: "log",
  },
  {
    at: "apps/console/control-watch.ts ControlWatch.answered",
    end: "the request's end, or a silent control plane",
    report: "`control_unavailable`",
  },
  {
    at: "apps/console/routes/pages/sql-pages.tsx streamed",
    end: "the client reads on or leaves",
    report: "the download",
  },
  { at: "apps/cli/log-commands.ts addLogCommands", end: "Ctrl-C: it follows", report: "its output" },

  // Loops of processes.
  {
    at: "apps/proxy/change-sets/runner.ts startChangeSets.loop",
    ...process("log; the change set stays `approved`"),
  },
  {
    at: "apps/proxy/sql-writes/outboxes.ts startOutboxes.loop",
    ...process("log; rows stay `queued` in `write.log` and `GET …/writes`"),
  },
  {
    at: "apps/proxy/sql-writes/outboxes.ts followOutbox",
    end: "the process stops, or another proxy reads the outbox, or it is no longer used",
    report: "log; rows stay `queued` in `write.log` and `GET …/writes`",
  },
  { at: "core/proxy/repair-loop.ts startRepairLoop.run", ...process("metric of repairs; indicator") },
  { at: "apps/worker/worker.ts runWorker.takeJobs", ...process("log; indicator: late or queued") },
  { at: "apps/worker/holds.ts Holds.#keep", end: "the base is given up", report: "indicator: late" },

  // Loops of leases.
  {
    at: "core/sync/engine/sync-base.ts readSchema",
    end: "TURN_MS, or the schema can be read",
    report: "the base's `schema_error`",
  },
  { at: "core/sync/lease/lease.ts run", ...lease("runs; indicator: late") },
  { at: "core/sync/lease/lease.ts rested", ...lease("log; the next sweep finds the records") },
  { at: "core/sync/lease/live-lease.ts goLive", ...lease("indicator: the feed was not read") },
  {
    at: "core/source/table-size.ts estimateSize",
    end: "the last page of the sample, or the sync or the check that it is for",
    report: "no estimate",
  },
  { at: "core/sync/engine/rebuild.ts goLiveWhenFree", ...lease("problem: a table is missing or outdated") },
  { at: "core/sync/engine/sync-marks.ts completeMarked", end: "the second time", report: "the run" },
  {
    at: "core/sync/pacing/quota-split.ts QuotaSplit.#acquireAll",
    end: "no request waits",
    report: "each request",
  },
  { at: "core/sync/modes/live/read-feed.ts keepReading", ...lease("indicator: the feed was not read") },
  { at: "core/sync/modes/live/rest.ts restUntilDue", ...lease("indicator: the feed was not read") },
  { at: "core/sync/modes/rapid/rapid.ts keepCycling", ...lease("indicator: late") },
  {
    at: "core/sync/pacing/scheduler.ts Scheduler.run",
    ...lease("of each item: its table's failure, problem or run"),
  },
];
