-- Rate limits that all processes share.

-- attempt(key, most, window): counts an attempt. Returns 0, or, if there were already `most` in the same window, the
-- milliseconds until that window ends. A single row per key and the database's clock make the limit global.
create or replace function attempt(p_key text, p_most integer, p_window interval) returns integer language sql as $$
  insert into attempts as a (key, count, ends_at) values (p_key, 1, clock_timestamp() + p_window)
  on conflict (key) do update set
    count = case when a.ends_at <= clock_timestamp() then 1 else least(a.count, p_most) + 1 end,
    ends_at = case when a.ends_at <= clock_timestamp() then excluded.ends_at else a.ends_at end
  returning case when count <= p_most then 0
    else greatest(1, ceil(extract(epoch from ends_at - clock_timestamp()) * 1000))::integer end
$$;
