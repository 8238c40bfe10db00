/** A replica of one table, on which its customer creates their own objects. */
import type postgres from "postgres";
import { expect, inject, onTestFinished } from "vitest";
import {
  type CatalogTable,
  changeShape,
  foreignNames,
  loadCatalog,
  planSchema,
  settleDependents,
  setWritable,
  startBuild,
} from "../../core/replica";
import type { FieldType } from "../../core/source";
import { plainAdmin } from "./plain-admin";
import { putBuild } from "./put-build";
import { readerOf, type TestReplica, testReplica } from "./replica";
import { sourceTable } from "./source-records";

const SETTINGS = { linkedRecordsAsText: false, lookupsAsText: false };

/** The cell of its one row, by the column's type; any other type gets a text. */
const CELLS: Record<string, unknown> = {
  numeric: 5,
  "text[]": ["five"],
  date: "2024-05-01",
  timestamp: "2024-05-01T12:34:56",
  boolean: true,
};

export interface Shop {
  test: TestReplica;
  sql: postgres.Sql;
  /** The customer's own connection, which may write next to the replicated tables. */
  customer: postgres.Sql;
  /** Gives `orders` these fields (their ids are their positions), as a sync does: the source has no other table. */
  become(fields: Record<string, FieldType>, name?: string, id?: string): Promise<void>;
  /** The source no longer has a table. */
  drop(): Promise<void>;
  live(): Promise<CatalogTable>;
}

/** The service's role on the server. */
export type ServiceRole = "superuser" | "plain admin";

/** Creates a replica with the table `orders` of one row, in a database that the customer may write to. */
export async function openShop(
  fields: Record<string, FieldType>,
  service: ServiceRole = "superuser",
): Promise<Shop> {
  const admin = service === "superuser" ? undefined : await plainAdmin();
  if (admin) onTestFinished(() => admin[Symbol.asyncDispose]());
  const test = await testReplica(admin?.url ?? inject("postgresUrl"));
  onTestFinished(() => test[Symbol.asyncDispose]());
  await setWritable(test.ownerUrl, test.role, "public", true);
  const customer = readerOf(test.readerUrl);
  onTestFinished(() => customer[Symbol.asyncDispose]());
  return shopIn(test, customer, fields);
}

/** Creates the table `orders` of one row in this replica. */
export async function shopIn(
  test: TestReplica,
  customer: postgres.Sql,
  fields: Record<string, FieldType>,
): Promise<Shop> {
  const { replica, epoch } = test;
  const sql = replica.sql as unknown as postgres.Sql;
  const live = async () => (await loadCatalog(replica)).get("tblO")!;
  const made: Shop = {
    test,
    sql,
    customer,
    live,
    async become(wanted, name = "Orders", id = "tblO") {
      const catalog = await loadCatalog(replica);
      const source = { tables: [sourceTable(id, name, wanted)] };
      const plan = planSchema(catalog, source, SETTINGS, await foreignNames(replica, []));
      await changeShape(replica, epoch, catalog, plan);
      for (const spec of plan.rebuild) {
        const build = await startBuild(replica, epoch, spec);
        const cells = spec.columns.map((column) => [column.name, CELLS[column.columnType] ?? "five"]);
        await build.append([
          { id: "rec1", created_time: "2024-05-01T12:34:56", ...Object.fromEntries(cells) },
        ]);
        const now = (await loadCatalog(replica)).get(id);
        expect(await putBuild({ replica, epoch }, build, now)).toBe(true);
      }
      await settleDependents(replica);
    },
    async drop() {
      const catalog = await loadCatalog(replica);
      await changeShape(replica, epoch, catalog, planSchema(catalog, { tables: [] }, SETTINGS));
    },
  };
  await made.become(fields);
  return made;
}
