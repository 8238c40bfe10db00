/** The replica's half of a proxied write, as the proxy does it. */
import {
  applyRowImages,
  compileMapper,
  loadCatalog,
  mapRecords,
  type Replica,
  takeReadVersion,
} from "../../core/replica";
import type { SourceRecord } from "../../core/source";
import type { FakeTable } from "./fake-source";

/**
 * Shows what the source answered a write with; an answer that loses is asked for again.
 *
 * @param readVersion taken before the source wrote
 * @param answer null: the record is gone
 */
export async function applyWrite(
  replica: Replica,
  table: FakeTable,
  id: string,
  readVersion: number,
  answer: SourceRecord | null,
): Promise<void> {
  const live = (await loadCatalog(replica)).get(table.table.id)!;
  for (let [at, record] = [readVersion, answer]; ; record = structuredClone(table.records.get(id) ?? null)) {
    const { lost } = await applyRowImages(replica, live, {
      epoch: null,
      readVersion: at,
      rows: record ? mapRecords(compileMapper(live.spec), [record], []) : [],
      gone: record ? [] : [id],
      issues: [],
      records: record ? [record] : [],
    });
    if (lost.length === 0) return;
    at = await takeReadVersion(replica);
  }
}
