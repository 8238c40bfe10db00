-- Counts of clients' calls by caller, for display.

-- quota_count_callers(rows, most): adds calls of this hour (UTC) to the callers of each key, as [{key, caller, calls}], and
-- deletes the callers of the day beyond the `most` with the most calls. Each key's lock is taken in one order, so that
-- processes that count the same keys do not deadlock; it is not the lock that reservations take.
create or replace function quota_count_callers(p_rows jsonb, p_most integer) returns void
language plpgsql as $$
declare
  today date := (now() at time zone 'UTC')::date;
  n integer := extract(hour from now() at time zone 'UTC')::integer + 1;
begin
  perform set_config('synchronous_commit', 'off', true);
  perform pg_advisory_xact_lock(l.id) from (
    select distinct hashtextextended('callers:' || (r ->> 'key'), 0) as id from jsonb_array_elements(p_rows) as r
    order by id) as l;
  insert into quota_callers as c (key, day, caller, calls)
  select r.key, today, r.caller, array_fill(0, array[n - 1]) || r.calls || array_fill(0, array[24 - n])
  from jsonb_to_recordset(p_rows) as r (key text, caller text, calls integer)
  on conflict (key, day, caller) do update set calls[n] = c.calls[n] + excluded.calls[n];
  delete from quota_callers as c
  using (
    select o.key, o.caller, row_number() over (
      partition by o.key order by (select sum(h) from unnest(o.calls) as h) desc, o.caller) as rank
    from quota_callers as o
    where o.day = today and o.key in (select r ->> 'key' from jsonb_array_elements(p_rows) as r)) as ranked
  where ranked.rank > p_most and c.key = ranked.key and c.day = today and c.caller = ranked.caller;
end $$;
