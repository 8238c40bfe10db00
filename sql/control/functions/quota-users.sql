-- The limit of a user of the source, over all keys.

-- quota_user(user): the user's row, locked until the transaction ends.
create or replace function quota_user(p_user text) returns quota_users
language plpgsql as $$
declare
  u quota_users;
begin
  select * into u from quota_users q where q.id = p_user for update;
  if not found then
    insert into quota_users (id) values (p_user) on conflict do nothing;
    select * into u from quota_users q where q.id = p_user for update;
  end if;
  return u;
end $$;

-- quota_user_reservation(reservations, from, margin, most, window): the earliest time at or after `from` at which one
-- more call leaves no more than `most` in any `window` ms. Reservations of other keys may lie ahead, so it checks both
-- directions, and ahead as far as both calls may be in transit.
create or replace function quota_user_reservation(
  p_reservations float8[], p_from float8, p_margin float8, p_most integer, p_window_ms float8) returns float8
language plpgsql immutable as $$
declare
  most_margin_ms constant float8 := 400;
  reservation float8 := p_from;
  near float8[];
begin
  loop
    exit when cardinality(p_reservations) < p_most;
    near := array(
      select s from unnest(p_reservations) s
      where s > reservation - p_window_ms and s < reservation + p_window_ms + p_margin + most_margin_ms
      order by s);
    exit when cardinality(near) < p_most;
    reservation := near[cardinality(near) - p_most + 1] + p_window_ms;
  end loop;
  return reservation;
end $$;
