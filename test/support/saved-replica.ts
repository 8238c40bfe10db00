/** A replica that loses commits, as when a standby that lagged behind is promoted, or a backup is restored. */
import type { Replica } from "../../core/replica";

export interface SavedReplica {
  /**
   * Loses everything that was committed since it was saved, numbers included.
   *
   * @param options.isSameServer false unless given: the replica is then on another server
   */
  lose(options?: { isSameServer?: boolean }): Promise<void>;
}

/** Saves the replica's state, and the rows of these tables. Their shapes must stay as they are. */
export async function saveReplica({ sql }: Replica, tables: readonly string[]): Promise<SavedReplica> {
  const relations = [
    "public_swap._state",
    "public_swap._recent_writes",
    ...tables.map((name) => `public.${name}`),
  ];
  const saved: { relation: string; rows: string }[] = [];
  for (const relation of relations) {
    const [row] = await sql<{ rows: string }[]>`
      select coalesce(jsonb_agg(to_jsonb(t)), '[]')::text as rows from ${sql.unsafe(relation)} as t`;
    saved.push({ relation, rows: row!.rows });
  }
  const [versions] = await sql<{ last: string; isCalled: boolean }[]>`
    select last_value::text as last, is_called as "isCalled" from public_swap._versions`;
  return {
    async lose({ isSameServer = false } = {}) {
      await sql.begin(async (tx) => {
        for (const { relation, rows } of saved) {
          await tx`delete from ${tx.unsafe(relation)}`;
          await tx`
            insert into ${tx.unsafe(relation)}
            select * from jsonb_populate_recordset(null::${tx.unsafe(relation)}, ${rows}::text::jsonb)`;
        }
        if (!isSameServer) await tx`update public_swap._state set incarnation = 'another server'`;
        await tx`select setval('public_swap._versions', ${versions!.last}::text::bigint, ${versions!.isCalled})`;
      });
    },
  };
}
