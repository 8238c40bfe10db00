/** A base as sync sees it, and the interface to the service that runs sync. */
export type {
  Allowance,
  BaseState,
  FailingTable,
  FoundProblem,
  IndexSetting,
  ProblemKind,
  Progress,
  RunReport,
  SchemaError,
  SyncedBase,
  SyncFacts,
  SyncKind,
  SyncProblem,
  SyncSettings,
  TableCount,
} from "./base";
export type { FeedStore, NewFeedWebhook, NotificationState, ReadFacts, SavedFeed } from "./feed-store";
export type { Findings, Host, OnFacts, ReplicaState, Watching } from "./host";
