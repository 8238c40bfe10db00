-- Keeps the calls of bases that leave a workspace.

-- quota_carry_over(key, workspace, base): keeps the calls that a leaving base has used this month with its workspace.
-- Of sync's calls only the base's own, if other bases have the same source base connected.
create or replace function quota_carry_over(p_key text, p_workspace text, p_base text default null) returns void
language plpgsql as $$
declare
  this_month date := date_trunc('month', now() at time zone 'UTC');
  is_shared boolean := p_base is not null and exists (
    select from bases b
    where b.platform = split_part(p_key, ':', 1) and b.source_base_id = split_part(p_key, ':', 2) and b.id <> p_base);
begin
  perform quota_lock(p_key);
  insert into quota_calls as c (key, month, sync, client)
  select 'left:' || p_workspace, this_month,
    case when is_shared
      then (select coalesce(sum(k.calls), 0) from quota_kinds k where k.key = 'base:' || p_base and k.month = this_month)
      else coalesce(sum(used.sync), 0)
    end,
    coalesce(sum(used.client), 0)
  from quota_calls used where used.key = p_key and used.month = this_month
  on conflict on constraint quota_calls_pkey do update
    set sync = c.sync + excluded.sync, client = c.client + excluded.client;
  insert into quota_kinds as k (key, month, kind, calls)
  select 'left:' || p_workspace, q.month, q.kind, q.calls from quota_kinds q
  where q.key = case when is_shared then 'base:' || p_base else p_key end and q.month = this_month
  on conflict on constraint quota_kinds_pkey do update set calls = k.calls + excluded.calls;
end $$;
