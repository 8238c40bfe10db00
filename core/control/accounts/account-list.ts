/** All accounts with their sizes, for the operator. */
import type { Db } from "../../context";

export interface AccountSummary {
  id: string;
  email: string;
  isOperator: boolean;
  /** The region of its new databases; null: any. */
  region: string | null;
  bases: number;
  records: number;
  databases: number;
  createdAt: Date;
}

/** The newest first. */
export async function listAccounts(db: Db): Promise<AccountSummary[]> {
  return db<AccountSummary[]>`
    with held as (
      select b.account_id, count(*)::int as bases,
        sum((select coalesce(sum((t ->> 'records')::float8), 0) from jsonb_array_elements(b.tables) as t)) as records
      from bases as b group by b.account_id
    )
    select a.id, a.email, a.is_operator as "isOperator", a.region, a.created_at as "createdAt",
      coalesce(h.bases, 0) as bases, coalesce(h.records, 0) as records,
      (select count(*)::int from databases as d where d.account_id = a.id) as databases
    from accounts as a left join held as h on h.account_id = a.id
    order by a.created_at desc, a.id`;
}
