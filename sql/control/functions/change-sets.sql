-- Claims of change sets by proxies.

-- claim_change_set(holder, held_for, most_of_account, given_up): gives `holder` the set that has been due for longest, and that
-- no living proxy holds. Returns it, or nothing.
--   most_of_account  sets of an account that are held at once
--   given_up         how long after its decision a set is claimed even if its setting is off, to be ended
-- Of a base, only the first set is claimed, and while no other is held; one that was canceled comes before all others: what it had
-- sent is looked up before others change it. What a SQL transaction has left is only looked up: it waits for no other set. One claim is made at a time: its second statement sees all claims before it.
create or replace function claim_change_set(
  p_holder text, p_held_for interval, p_most_of_account integer, p_given_up interval)
returns setof change_sets
language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('basetide change sets', 0));
  return query
    update change_sets as s
    set holder = p_holder, held_until = now() + p_held_for,
      state = case when s.state = 'approved' then 'running' else s.state end
    where s.id = (
      select due.id from change_sets as due join bases as its on its.id = due.base_id
      where due.ended_at is null and due.state <> 'proposed'
        and (due.held_until is null or due.held_until < now())
        and (due.rests_until is null or due.rests_until <= now())
        and its.state not in ('moving', 'deleting') and change_set_may_run(due, its, p_given_up)
        and (due.is_awaited
          or not exists (
              select from change_sets as other
              where other.base_id = due.base_id and other.id <> due.id and not other.is_awaited
                and other.ended_at is null and other.state <> 'proposed'
                and (other.held_until >= now() or change_set_may_run(other, its, p_given_up)
                  and (other.state <> 'canceled', other.decided_at, other.id)
                    < (due.state <> 'canceled', due.decided_at, due.id)))
            and (
              select count(*) from change_sets as held join bases as b on b.id = held.base_id
              where held.ended_at is null and held.held_until >= now() and not held.is_awaited
                and b.account_id = its.account_id) < p_most_of_account)
      order by greatest(due.decided_at, due.rests_until) limit 1 for update of due skip locked)
    returning s.*;
end $$;

-- change_set_may_run(set, base, given_up): whether the base's settings allow its operations, or it only has to be ended.
create or replace function change_set_may_run(s change_sets, b bases, p_given_up interval) returns boolean
language sql stable as $$
  select b.change_sets or s.is_awaited or s.sql_role is not null and b.sql_writes or s.decided_at <= now() - p_given_up
$$;
