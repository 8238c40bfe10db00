-- What a worker that gives a base up knows of its rows, for the next worker. Installed with install.sql.
--
-- It is valid for the lease that directly follows the one that wrote it. What other processes have written meanwhile is
-- in the recent-writes log, which only leases trim. Should the server lose commits, it loses this before those of the
-- rows, which are older.

-- fingerprints: as core/sync/state/fingerprints.ts packs them. program: the version that wrote them.
create table if not exists {{swap}}._known_rows (
  table_id text primary key,
  epoch bigint not null,
  program text not null,
  shape integer not null,
  logged_up_to bigint not null,
  compared_at timestamptz not null,
  fingerprints bytea not null
);
-- Hashes do not compress.
alter table {{swap}}._known_rows alter column fingerprints set storage external;

-- hand_over(epoch, program, ...): replaces what is stored with what the lease knows, one element of each array per table.
create or replace function {{swap}}.hand_over(
  p_epoch bigint, p_program text, p_tables text[], p_shapes integer[], p_logged_up_to bigint[],
  p_compared_ago_ms float8[], p_fingerprints text[]
) returns void language plpgsql as $hand_over$
begin
  perform {{swap}}.fence(p_epoch);
  delete from {{swap}}._known_rows as k where k.table_id <> all (p_tables);
  insert into {{swap}}._known_rows as k (table_id, epoch, program, shape, logged_up_to, compared_at, fingerprints)
  select t.id, p_epoch, p_program, t.shape, t.logged_up_to, clock_timestamp() - t.ago_ms * interval '1 ms', decode(t.hex, 'hex')
  from unnest(p_tables, p_shapes, p_logged_up_to, p_compared_ago_ms, p_fingerprints)
    as t (id, shape, logged_up_to, ago_ms, hex)
  on conflict (table_id) do update
  set epoch = excluded.epoch, program = excluded.program, shape = excluded.shape, logged_up_to = excluded.logged_up_to,
    compared_at = excluded.compared_at, fingerprints = excluded.fingerprints;
end $hand_over$;
