-- Counts of calls by month, day, hour and minute, by purpose, and by caller.

-- quota_count(rows, most, at): adds the calls of the last seconds before `at`, as [{key, sync, client, kinds: {<purpose>: calls},
-- callers: {<caller>: calls}}], and deletes the callers of the day beyond the `most` with the most calls. Rows are locked in the
-- order of their keys, so that processes that count the same keys do not deadlock. Minutes older than an hour are deleted.
create or replace function quota_count(p_rows jsonb, p_most integer, p_at timestamptz default now()) returns void
language plpgsql as $$
declare
  today constant date := p_at at time zone 'UTC';
  this_month constant date := date_trunc('month', p_at at time zone 'UTC');
  n constant integer := extract(hour from p_at at time zone 'UTC')::integer + 1;
begin
  perform set_config('synchronous_commit', 'off', true);
  insert into quota_calls as c (key, month, sync, client)
  select r.key, this_month, r.sync, r.client from jsonb_to_recordset(p_rows) as r (key text, sync integer, client integer)
  where r.sync + r.client > 0 order by r.key
  on conflict (key, month) do update set sync = c.sync + excluded.sync, client = c.client + excluded.client;
  insert into quota_minutes as m (key, minute, sync, client)
  select r.key, date_trunc('minute', p_at), r.sync, r.client
  from jsonb_to_recordset(p_rows) as r (key text, sync integer, client integer)
  where r.sync + r.client > 0 order by r.key
  on conflict (key, minute) do update set sync = m.sync + excluded.sync, client = m.client + excluded.client;
  delete from quota_minutes as m using jsonb_to_recordset(p_rows) as r (key text)
  where m.key = r.key and m.minute < p_at - interval '1 hour';
  insert into quota_days as d (key, day, sync, client)
  select r.key, today, quota_of_hour(n, r.sync), quota_of_hour(n, r.client)
  from jsonb_to_recordset(p_rows) as r (key text, sync integer, client integer)
  where r.sync + r.client > 0 order by r.key
  on conflict (key, day) do update set sync[n] = d.sync[n] + excluded.sync[n], client[n] = d.client[n] + excluded.client[n];
  insert into quota_kinds as k (key, month, kind, calls)
  select r.key, this_month, o.kind, o.calls::bigint
  from jsonb_to_recordset(p_rows) as r (key text, kinds jsonb), jsonb_each(r.kinds) as o (kind, calls) order by 1, 3
  on conflict (key, month, kind) do update set calls = k.calls + excluded.calls;
  insert into quota_callers as c (key, day, caller, calls)
  select r.key, today, o.caller, quota_of_hour(n, o.calls::integer)
  from jsonb_to_recordset(p_rows) as r (key text, callers jsonb), jsonb_each(r.callers) as o (caller, calls) order by 1, 3
  on conflict (key, day, caller) do update set calls[n] = c.calls[n] + excluded.calls[n];
  delete from quota_callers as c
  using (
    select o.key, o.caller, row_number() over (
      partition by o.key order by (select sum(h) from unnest(o.calls) as h) desc, o.caller) as rank
    from quota_callers as o
    where o.day = today
      and o.key in (select r ->> 'key' from jsonb_array_elements(p_rows) as r where r -> 'callers' <> '{}')) as ranked
  where ranked.rank > p_most and c.key = ranked.key and c.day = today and c.caller = ranked.caller;
end $$;

-- quota_of_hour(n, calls): a day's calls by hour, all of them in the n-th.
create or replace function quota_of_hour(n integer, calls integer) returns integer[]
language sql immutable as $$
  select array_fill(0, array[n - 1]) || calls || array_fill(0, array[24 - n]);
$$;
