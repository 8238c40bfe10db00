/** The names of the things that audit entries are about, as far as they still exist. */
import type { Db } from "../../context";

export interface AuditSubject {
  kind:
    | "base"
    | "database"
    | "sql_user"
    | "workspace"
    | "token"
    | "webhook"
    | "user"
    | "change_set"
    | "agent";
  name: string;
  /** Of a database, or the database of a SQL user: a base in it. */
  baseId: string | null;
}

/** @param ids subjects of entries; those of other accounts are not found */
export async function findSubjects(
  db: Db,
  accountId: string,
  ids: string[],
): Promise<Map<string, AuditSubject>> {
  const wanted = [...new Set(ids)];
  if (wanted.length === 0) return new Map();
  const found = await db<(AuditSubject & { id: string })[]>`
    select id, 'base' as kind, coalesce(nullif(name, ''), source_base_id) as name, id as "baseId"
      from bases where account_id = ${accountId} and id = any(${wanted})
    union all
    select d.id, 'database', coalesce(nullif(b.name, ''), b.source_base_id, d.name), b.id
      from databases as d left join lateral (
        select id, name, source_base_id from bases where database_id = d.id and account_id = ${accountId}
        order by created_at, id limit 1) as b on true
      where d.account_id = ${accountId} and d.id = any(${wanted})
    union all
    select u.id, 'sql_user', u.name, (
        select id from bases where database_id = d.id and account_id = ${accountId} order by created_at, id limit 1)
      from sql_users as u join databases as d on d.id = u.database_id
      where d.account_id = ${accountId} and u.id = any(${wanted})
    union all
    select id, 'workspace', name, null from workspaces where account_id = ${accountId} and id = any(${wanted})
    union all
    select id, 'token', name, null from api_tokens where account_id = ${accountId} and id = any(${wanted})
    union all
    select id, 'agent', name, null from agents where account_id = ${accountId} and id = any(${wanted})
    union all
    select id, 'webhook', name, null from alert_webhooks where account_id = ${accountId} and id = any(${wanted})
    union all
    select s.id, 'change_set', coalesce(nullif(s.note, ''), s.id), s.base_id
      from change_sets as s join bases as b on b.id = s.base_id
      where b.account_id = ${accountId} and s.id = any(${wanted})
    union all
    select u.id, 'user', u.email, null from users as u join account_members as m on m.user_id = u.id
      where m.account_id = ${accountId} and u.id = any(${wanted})`;
  return new Map(found.map(({ id, ...subject }) => [id, subject]));
}
