/**
 * Syncs the table of `first-sync` once, in a process of its own, so that its memory and CPU are those of a worker.
 *
 * Environment: REPLICA (the owner's URL), SOURCE (URL of the pages), FIELDS, TABLES, RETYPED (see `large-table.ts`). Prints
 * the report as JSON in its last line.
 */
import { claimEpoch, openReplica } from "../../core/replica";
import type { SourceConnection } from "../../core/source";
import { dependentsOf } from "../../core/source/airtable/dependents";
import { readPage } from "../../core/source/airtable/page";
import { syncBase } from "../../core/sync/engine";
import { BaseCache } from "../../core/sync/state";
import { engineInput } from "../support/engine-input";
import { largeTables } from "./large-table";

const { REPLICA, SOURCE, FIELDS, TABLES, RETYPED } = process.env;
const tables = largeTables(Number(TABLES ?? 1), Number(FIELDS), RETYPED || undefined);
const unused = () => Promise.reject(new Error("not part of this bench"));

const connection: SourceConnection = {
  connections: undefined,
  over: () => connection,
  changeFeed: {
    dependents: dependentsOf,
    changesByItself: () => false,
    hasHiddenDependencies: () => false,
    isAsTold: () => false,
    createWebhook: unused,
    listWebhooks: unused,
    deleteWebhook: unused,
    refreshWebhook: unused,
    enableNotifications: unused,
    listPayloads: unused,
  },
  whoami: async () => ({ id: "usr1" }),
  listBases: unused,
  getSchema: async () => ({ tables: structuredClone(tables) }),
  isRecordId: (id) => id.startsWith("rec"),
  async listPage(_base, of, { offset }) {
    const answer = await fetch(`${SOURCE}/${offset?.split("/")[1] ?? 0}`);
    return readPage(Buffer.from(await answer.arrayBuffer()), of);
  },
  listByIds: unused,
  getRecord: unused,
};

const replica = openReplica({ url: REPLICA!, schema: "public" });
const epoch = await claimEpoch(replica);
const input = engineInput({ replica, epoch, cache: new BaseCache(epoch), connection });
const report = await syncBase({ ...input, schemaPollMs: 60_000 });
console.log(JSON.stringify({ ...report, error: report.error?.message, tables: undefined }));
await replica.close();
process.exit(0);
