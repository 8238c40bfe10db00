/** What the API tells about a base: its syncs, the calls to Airtable, changes of its schema, and its names in SQL. */
import { listRuns, listSchemaChanges, replicaShape } from "../../../core/control/bases";
import { callsOver } from "../../../core/control/history";
import { serverNow } from "../../../core/postgres";
import type { Alias, TableSpec } from "../../../core/replica";
import { oldNames } from "../../../core/sql-editor";
import { ofBase, resource } from "../resource-kit/resource";
import { idParams } from "../schemas";
import { baseCalls, callsQuery } from "../schemas/calls";
import { runs, runsQuery, schemaChanges, schemaChangesQuery } from "../schemas/history";
import { nameList, oldNameList } from "../schemas/names";
import { LISTED } from "../schemas/parts";

const API = "/api/v1/bases/:id";
const DEFAULT_RUNS = 50;

export const baseReports = resource({ tag: "Bases", params: idParams, scope: ofBase })
  .all({
    api: `GET ${API}/runs`,
    summary: "The latest syncs, newest first",
    query: runsQuery,
    answer: runs,
    run: async ({ db }, base, { limit = DEFAULT_RUNS }) =>
      (await listRuns(db, base.id, limit)).map(({ error_code, error_message, ...run }) => ({
        ...run,
        error: error_code === null ? null : { code: error_code, message: error_message ?? "" },
      })),
  })
  .all({
    api: `GET ${API}/calls`,
    summary: "Calls to Airtable by sync, clients and console",
    description:
      "The last 24 hours, or the last 30 days (UTC), up to 10 seconds behind. Clients are listed by the first letters of their API keys, the ten with the most calls a day; `others` are all the rest. If several accounts have connected the base, keys are not listed.",
    query: callsQuery,
    answer: baseCalls,
    async run({ db }, base, { per = "hour" }) {
      const { buckets, callers } = await callsOver(db, base, per, serverNow(base));
      return {
        per,
        buckets: buckets.map((bucket) => ({ ...bucket, from: bucket.at })),
        clients: callers.map(({ kind, name, calls }) => ({ kind, key: name === "" ? null : name, calls })),
      };
    },
  })
  .all({
    api: `GET ${API}/schema-changes`,
    summary: "Schema changes in Airtable, newest first",
    description: "A change is listed once it is applied to the database. Changes are kept for a year.",
    query: schemaChangesQuery,
    answer: schemaChanges,
    run: ({ db }, base, { limit = LISTED, severity }) => listSchemaChanges(db, base.id, limit, severity),
  })
  .all({
    api: `GET ${API}/names`,
    summary: "Names in Airtable and in SQL",
    description: "Change the base to pin names (`pinned_names`) or to choose them (`own_names`).",
    raises: ["replica_unavailable"],
    answer: nameList,
    async run(ctx, base) {
      const { tables } = await replicaShape(ctx, base);
      const named = <Part extends Pick<TableSpec, "isOwnName">>(part: Part) => ({
        ...part,
        isOwn: part.isOwnName === true,
      });
      return {
        tables: tables.map((table) => ({
          ...named(table),
          columns: table.columns.filter(({ filesOf }) => filesOf === undefined).map(named),
        })),
      };
    },
  })
  .all({
    api: `GET ${API}/old-names`,
    summary: "Old names that still work, and what uses them",
    description:
      "After a rename, the old name of a table or a column works for some days (`alias_days`). Lists saved queries, views, functions, triggers and statements that still use it, and old names that are not kept.",
    raises: ["replica_unavailable"],
    answer: oldNameList,
    async run(ctx, base) {
      const { aliases, lost, uses, knowsStatements } = await oldNames(ctx, base);
      const dated = (alias: Alias) => ({ ...alias, renamedAt: alias.madeAt });
      return {
        oldNames: aliases.map(dated),
        lostNames: lost.map((alias) => ({ ...dated(alias), reason: alias.obstacle })),
        uses: uses.map((use) => ({ ...use, calls: use.calls ?? null, oldNames: use.aliases })),
        knowsStatements,
      };
    },
  });
