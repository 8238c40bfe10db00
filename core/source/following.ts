import type { SourceConnection } from "./types";

/** A connection that always delegates to the result of `current`. */
export function following(current: () => SourceConnection): SourceConnection {
  return {
    get connections() {
      return current().connections;
    },
    over: (held) => current().over(held),
    get changeFeed() {
      return current().changeFeed;
    },
    whoami: (signal) => current().whoami(signal),
    listBases: (signal) => current().listBases(signal),
    getSchema: (...call) => current().getSchema(...call),
    isRecordId: (id) => current().isRecordId(id),
    listPage: (...call) => current().listPage(...call),
    listByIds: (...call) => current().listByIds(...call),
    getRecord: (...call) => current().getRecord(...call),
  };
}
