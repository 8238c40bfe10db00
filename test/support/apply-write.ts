/** Applies a proxied write to the replica, as the proxy does. */
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
 * Applies the source's answer to a write. If a newer image exists, the record is read again.
 *
 * @param readVersion taken before the source wrote
 * @param answer null: the record was deleted
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
