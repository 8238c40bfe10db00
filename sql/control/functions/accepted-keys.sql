-- Keys that the source has accepted for a base.

-- accept_key(base, hash): records that the source has accepted the key for the base. Keeps a base's 200 latest, for a
-- day.
create or replace function accept_key(p_base text, p_hash text) returns void
language sql as $$
  insert into accepted_keys (source_base_id, key_hash) values (p_base, p_hash)
  on conflict (source_base_id, key_hash) do update set accepted_at = now();
  delete from accepted_keys k
  where k.accepted_at < now() - interval '1 day'
    or (k.source_base_id = p_base and k.key_hash in (
      select o.key_hash from accepted_keys o where o.source_base_id = p_base
      order by o.accepted_at desc, o.key_hash offset 200));
$$;
