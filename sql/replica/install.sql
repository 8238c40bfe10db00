-- Installs a replica: the customer's schema {{schema}} and ours, {{swap}}. Idempotent.
--
-- {{schema}} holds the replicated tables, _sync_meta (and its view __sync_meta__) and _sync_issues.
-- {{swap}} is where tables are built, and where the state lives that must be true in the same transaction
-- as the rows: the epoch, the catalog, the tickets, the journal. Customers have no right to it.
--
-- Placeholders are quoted identifiers; {{swap_text}} is the name of {{swap}} as a string literal.

create schema if not exists {{schema}};
create schema if not exists {{swap}};
revoke all on schema {{swap}} from public;

create table if not exists {{schema}}._sync_meta (
  started_at timestamptz,
  completed_at timestamptz,
  duration_last interval
);
create unique index if not exists _sync_meta_one_row on {{schema}}._sync_meta ((true));
insert into {{schema}}._sync_meta default values on conflict do nothing;
create or replace view {{schema}}.__sync_meta__ as table {{schema}}._sync_meta;
comment on table {{schema}}._sync_meta is
  'One row: when the last sync started and completed. started_at later than completed_at: a sync is running.';

create table if not exists {{schema}}._sync_issues (
  table_name text not null,
  record_id text not null,
  field text not null,
  value text not null,
  reason text not null,
  seen_at timestamptz not null default now(),
  constraint _sync_issues_pkey primary key (table_name, record_id, field)
);
comment on table {{schema}}._sync_issues is
  'Cells of the source whose value does not fit the column: they are NULL (or cleaned) until mended in the source.';

-- One row. epoch: which lease of the base may write. journal_floor: images with an older ticket are refused,
-- because the journal no longer knows what was applied after them. reader: the customer's role.
create table if not exists {{swap}}._state (
  epoch bigint not null default 0,
  journal_floor bigint not null default 0,
  reader text
);
create unique index if not exists _state_one_row on {{swap}}._state ((true));
insert into {{swap}}._state default values on conflict do nothing;
-- What the base's settings want besides rows: link-views.sql, changes.sql.
alter table {{swap}}._state
  add column if not exists link_views boolean not null default false,
  add column if not exists history boolean not null default false,
  add column if not exists notify boolean not null default false;

-- The catalog: the shape of each table, and the names given, by the source's ids.
-- shape counts up whenever the columns change; apply_sql writes mapped rows into the live table. columns_since: the
-- ticket counter when the table that is live was swapped in; an image asked for before may lack some of its columns.
create table if not exists {{swap}}._tables (
  table_id text primary key,
  name text not null,
  shape integer not null,
  spec jsonb not null,
  apply_sql text not null,
  constraint _tables_name_unique unique (name) deferrable initially deferred
);
alter table {{swap}}._tables add column if not exists columns_since bigint not null default 0;
-- What the source's fields were when all cells were last read: read_as in core/sync/read-as.ts.
alter table {{swap}}._tables add column if not exists read_as jsonb;

create sequence if not exists {{swap}}._tickets;

-- The latest image applied to a record. stamp: the ticket counter at that moment. image: what the source
-- said, by field id, for a rebuild to apply again; null from a sweep, whose table no rebuild is reading. asked: the
-- ticket that was taken before the source was asked for the image.
create table if not exists {{swap}}._journal (
  table_id text not null,
  record_id text not null,
  stamp bigint not null,
  gone boolean not null,
  image jsonb,
  constraint _journal_pkey primary key (table_id, record_id)
);
alter table {{swap}}._journal add column if not exists asked bigint not null default 0;
create index if not exists _journal_by_stamp on {{swap}}._journal (stamp);

-- claim(): raises the epoch, which ends the right to write of whoever held the base before (I5). Waits for
-- that one's write in hand, which is a single statement and so cannot be held open by a frozen process. Tables that
-- were being built are of no use to anybody any more.
create or replace function {{swap}}.claim() returns bigint language plpgsql as $claim$
declare
  raised bigint;
  built text;
begin
  perform pg_advisory_xact_lock(hashtextextended({{swap_text}} || ' epoch', 0));
  update {{swap}}._state set epoch = epoch + 1 returning epoch into raised;
  for built in select c.relname from pg_class as c
    where c.relnamespace = '{{swap}}'::regnamespace and c.relkind = 'r' and c.relname !~ '^_'
  loop
    execute format('drop table {{swap}}.%I', built);
  end loop;
  perform {{swap}}.forget_started();
  return raised;
end $claim$;

-- forget_started(): the sync under way will not complete. Nothing runs then, and the replica is complete up to the
-- start of the last one that did.
create or replace function {{swap}}.forget_started() returns void language sql as $forget$
  update {{schema}}._sync_meta
  set started_at = completed_at - extract(epoch from duration_last) * interval '1 second'
  where started_at > completed_at or completed_at is null and started_at is not null;
$forget$;

-- fence(epoch): errs with BT001 unless epoch is the current one; holds it until the transaction ends.
-- null passes: a proxied write belongs to no lease.
create or replace function {{swap}}.fence(p_epoch bigint) returns void language plpgsql as $fence$
declare
  current_epoch bigint;
begin
  if p_epoch is null then
    return;
  end if;
  perform pg_advisory_xact_lock_shared(hashtextextended({{swap_text}} || ' epoch', 0));
  select s.epoch into current_epoch from {{swap}}._state as s;
  if current_epoch <> p_epoch then
    raise exception 'epoch % was overtaken by %', p_epoch, current_epoch using errcode = 'BT001';
  end if;
end $fence$;

-- lock_table(table_id): one writer of a table at a time, until the transaction ends.
create or replace function {{swap}}.lock_table(p_table text) returns void language sql as $lock$
  select pg_advisory_xact_lock(hashtextextended({{swap_text}} || ' table ' || p_table, 0));
$lock$;

-- note_issues(table name, records, issues): the issues of these records become these.
create or replace function {{swap}}.note_issues(p_name text, p_ids text[], p_issues json) returns void
language plpgsql as $issues$
begin
  delete from {{schema}}._sync_issues as old
  where old.table_name = p_name and old.record_id = any (p_ids)
    and not exists (
      select from json_to_recordset(p_issues) as new (record_id text, field text)
      where new.record_id = old.record_id and new.field = old.field
    );
  insert into {{schema}}._sync_issues as old (table_name, record_id, field, value, reason)
  select p_name, new.record_id, new.field, new.value, new.reason
  from json_to_recordset(p_issues) as new (record_id text, field text, value text, reason text)
  where new.record_id = any (p_ids)
  on conflict (table_name, record_id, field) do update
    set value = excluded.value, reason = excluded.reason, seen_at = now()
    where (old.value, old.reason) is distinct from (excluded.value, excluded.reason);
end $issues$;

-- apply_images(…): applies images of records of one table, all asked for after one ticket, and says which
-- lost. An image loses when another image of its record was applied after its ticket: nobody can tell which
-- of the two is newer (I1, I2). BT002: the table has another shape than the rows were mapped for.
--   p_rows    mapped rows for apply_sql      p_ids     their ids
--   p_gone    ids that the source no longer has
--   p_images  the source's records by id, for the journal; null from a sweep, which then notes only what changed
-- All in one statement of the client's: no process can freeze between its locks.
create or replace function {{swap}}.apply_images(
  p_epoch bigint, p_table text, p_shape integer, p_ticket bigint,
  p_rows json, p_ids text[], p_gone text[], p_issues json, p_images jsonb,
  out inserted integer, out updated integer, out deleted integer, out lost text[]
) language plpgsql as $apply$
declare
  target {{swap}}._tables;
  state {{swap}}._state;
  v_by text := case when p_epoch is null then 'proxy' else 'sync' end;
  rows_before jsonb[];
  inserted_ids text[] := '{}';
  updated_ids text[] := '{}';
  deleted_ids text[] := '{}';
  kept_ids text[];
  noted_ids text[];
begin
  perform {{swap}}.fence(p_epoch);
  perform {{swap}}.lock_table(p_table);
  select * into target from {{swap}}._tables as t where t.table_id = p_table;
  if target.shape is distinct from p_shape then
    raise exception 'table % has shape %, not %', p_table, target.shape, p_shape using errcode = 'BT002';
  end if;

  select * into state from {{swap}}._state;
  select coalesce(array_agg(j.record_id), '{}') into lost
  from {{swap}}._journal as j
  where j.table_id = p_table and j.stamp > p_ticket
    and (j.record_id = any (p_ids) or j.record_id = any (p_gone));
  -- I6. What was asked for before the table had its columns would leave new ones empty.
  if p_ticket < greatest(target.columns_since, state.journal_floor) then
    lost := p_ids || p_gone;
  end if;

  kept_ids := array(select id from unnest(p_ids) as id where id <> all (lost));
  if cardinality(kept_ids) > 0 then
    if state.history then
      rows_before := {{swap}}.rows_of(target.name, kept_ids);
    end if;
    execute target.apply_sql into inserted_ids, updated_ids using p_rows, lost;
    if state.history then
      perform {{swap}}.note_changes(target, v_by, rows_before, inserted_ids, updated_ids);
    end if;
  end if;
  if cardinality(p_gone) > 0 then
    if state.history then
      perform {{swap}}.note_deletes(target.name, v_by, array(select id from unnest(p_gone) as id where id <> all (lost)));
    end if;
    execute format(
      'with gone as (delete from {{schema}}.%I where id = any ($1) and id <> all ($2) returning id)
       select coalesce(array_agg(id), ''{}'') from gone', target.name
    ) into deleted_ids using p_gone, lost;
  end if;
  perform {{swap}}.note_issues(target.name, kept_ids || deleted_ids, p_issues);

  if p_images is null then
    noted_ids := inserted_ids || updated_ids || deleted_ids;
  else
    noted_ids := kept_ids || array(select id from unnest(p_gone) as id where id <> all (lost));
  end if;
  if cardinality(noted_ids) > 0 then
    insert into {{swap}}._journal (table_id, record_id, stamp, gone, image, asked)
    select p_table, id, nextval('{{swap}}._tickets'), id = any (p_gone), p_images -> id, p_ticket
    from unnest(noted_ids) as id
    on conflict (table_id, record_id) do update
      set stamp = excluded.stamp, gone = excluded.gone, image = excluded.image, asked = excluded.asked;
  end if;

  if state.notify then
    perform {{swap}}.tell_changes(target.name, inserted_ids || updated_ids || deleted_ids);
  end if;
  inserted := cardinality(inserted_ids);
  updated := cardinality(updated_ids);
  deleted := cardinality(deleted_ids);
end $apply$;

-- note_image(…): keeps an image of a record whose table is not built yet, for the rebuild that is reading it.
-- False when the image lost to one noted after its ticket. BT002: the table is there by now.
create or replace function {{swap}}.note_image(
  p_table text, p_ticket bigint, p_id text, p_gone boolean, p_image jsonb
) returns boolean language plpgsql as $note$
begin
  perform {{swap}}.lock_table(p_table);
  if exists (select from {{swap}}._tables as t where t.table_id = p_table) then
    raise exception 'table % is built', p_table using errcode = 'BT002';
  end if;
  insert into {{swap}}._journal as j (table_id, record_id, stamp, gone, image, asked)
  values (p_table, p_id, nextval('{{swap}}._tickets'), p_gone, p_image, p_ticket)
  on conflict (table_id, record_id) do update
    set stamp = excluded.stamp, gone = excluded.gone, image = excluded.image, asked = excluded.asked
    where j.stamp <= p_ticket;
  return found;
end $note$;

-- lock_relations(names, deadline): keeps everybody out of these tables of ours.
create or replace function {{swap}}.lock_relations(p_names text[], p_deadline timestamptz) returns void
language plpgsql as $lock_relations$
declare
  name text;
begin
  for name in select distinct n from unnest(p_names) as n order by n loop
    perform {{swap}}.wait_until(p_deadline);
    execute format('lock table {{schema}}.%I in access exclusive mode', name);
  end loop;
end $lock_relations$;

-- change_shape(…): runs DDL and sets catalog rows, all or nothing. BT002: one of the tables has another shape than the
-- one that the change was planned for, which is one less than the shape that it gets.
--   p_timeout     what all locks together are waited for: readers wait for no longer behind us
--   p_notes       statements that touch none of the locked tables: run before anybody waits for us
--   p_locked      tables that p_statements lock, by name
--   p_tables      [{table_id, name, shape, spec, apply_sql, read_as}]      p_dropped  table ids, dropped with their issues
create or replace function {{swap}}.change_shape(
  p_epoch bigint, p_timeout text, p_notes text[], p_locked text[], p_statements text[], p_tables jsonb,
  p_dropped text[]
) returns void language plpgsql as $change$
declare
  v_dropped text[];
  v_going oid[];
  v_changing oid[];
  v_deadline timestamptz;
  v_views jsonb[];
  one text;
begin
  perform {{swap}}.fence(p_epoch);
  perform set_config('lock_timeout', p_timeout, true);
  perform {{swap}}.lock_table(id)
  from (
    select value ->> 'table_id' as id from jsonb_array_elements(p_tables)
    union select unnest(p_dropped) order by id
  ) as touched;
  if exists (
    select from jsonb_to_recordset(p_tables) as p (table_id text, shape integer)
      left join {{swap}}._tables as t using (table_id) where t.shape is distinct from p.shape - 1
  ) then
    raise exception 'a table has another shape by now' using errcode = 'BT002';
  end if;
  v_dropped := array(select t.name from {{swap}}._tables as t where t.table_id = any (p_dropped));
  delete from {{schema}}._sync_issues where table_name = any (v_dropped);
  foreach one in array p_notes loop
    execute one;
  end loop;
  perform {{swap}}.lock_for_links();
  delete from {{swap}}._journal where table_id = any (p_dropped);
  delete from {{swap}}._tables where table_id = any (p_dropped);
  perform {{swap}}.set_catalog(p_tables);

  -- Finding out what is to be locked counts for nothing: there may be a thousand views.
  v_going := {{swap}}.going_link_views();
  v_changing := {{swap}}.changing_link_views();
  v_deadline := clock_timestamp() + p_timeout::interval;
  v_views := {{swap}}.lock_views(
    array(select format('{{schema}}.%I', name)::regclass::oid from unnest(v_dropped) as name)
      || v_going, v_deadline);
  perform {{swap}}.lock_link_views(v_changing, v_deadline);
  perform {{swap}}.lock_relations(p_locked || v_dropped, v_deadline);
  perform {{swap}}.rename_link_views();
  v_views := {{swap}}.drop_views(v_views);
  perform {{swap}}.drop_link_views();
  foreach one in array v_dropped loop
    perform {{swap}}.drop_table(one);
  end loop;
  foreach one in array p_statements loop
    execute one;
  end loop;
  perform {{swap}}.make_link_views();
  perform {{swap}}.make_views(v_views);
  perform {{swap}}.adopt_orphans();
end $change$;

-- set_catalog(tables): these rows of the catalog become these.
create or replace function {{swap}}.set_catalog(p_tables jsonb) returns void language sql as $catalog$
  insert into {{swap}}._tables as known (table_id, name, shape, spec, apply_sql, read_as)
  select * from jsonb_to_recordset(p_tables)
    as t (table_id text, name text, shape integer, spec jsonb, apply_sql text, read_as jsonb)
  on conflict (table_id) do update
    set name = excluded.name, shape = excluded.shape, spec = excluded.spec, apply_sql = excluded.apply_sql,
      read_as = coalesce(excluded.read_as, known.read_as)
$catalog$;

-- mark_read(epoch, table, read_as): all cells of the table have been read.
create or replace function {{swap}}.mark_read(p_epoch bigint, p_table text, p_read_as jsonb) returns void
language plpgsql as $mark_read$
begin
  perform {{swap}}.fence(p_epoch);
  update {{swap}}._tables set read_as = p_read_as where table_id = p_table;
end $mark_read$;

-- swap_in(…): puts a table that was built in {{swap}} in the place of the live one. False, with nothing done,
-- when the journal has an image for this table that the caller has not seen (p_seen): read it and come again.
-- BT002: the live table has another shape than p_shape (null: there is none).
--   p_timeout   what all locks together are waited for
--   p_built     the new table's name in {{swap}}      p_table  its row of the catalog
--   p_renames   statements that give columns of the live table the names that they have in the new one: views follow
create or replace function {{swap}}.swap_in(
  p_epoch bigint, p_timeout text, p_seen bigint, p_shape integer, p_built text, p_table jsonb, p_renames text[],
  p_issues json
) returns boolean language plpgsql as $swap$
declare
  v_name text := p_table ->> 'name';
  v_live {{swap}}._tables;
  v_going oid[];
  v_changing oid[];
  v_deadline timestamptz;
  v_views jsonb[];
  one text;
begin
  perform {{swap}}.fence(p_epoch);
  perform set_config('lock_timeout', p_timeout, true);
  perform {{swap}}.lock_table(p_table ->> 'table_id');
  if exists (
    select from {{swap}}._journal as j where j.table_id = p_table ->> 'table_id' and j.stamp > p_seen
  ) then
    return false;
  end if;
  select * into v_live from {{swap}}._tables as t where t.table_id = p_table ->> 'table_id';
  if v_live.shape is distinct from p_shape then
    raise exception 'table % has shape %, not %', v_name, v_live.shape, p_shape using errcode = 'BT002';
  end if;
  -- All that takes long comes before the locks that readers notice.
  delete from {{schema}}._sync_issues where table_name = v_live.name;
  insert into {{schema}}._sync_issues (table_name, record_id, field, value, reason)
  select v_name, i.record_id, i.field, i.value, i.reason
  from json_to_recordset(p_issues) as i (record_id text, field text, value text, reason text);
  execute format('grant select on {{swap}}.%I to %I', p_built, (select reader from {{swap}}._state));
  if (select s.history from {{swap}}._state as s) then
    perform {{swap}}.note_swap(v_live, p_built, p_table);
  end if;
  perform {{swap}}.lock_for_links();
  perform {{swap}}.set_catalog(jsonb_build_array(p_table));

  v_going := {{swap}}.going_link_views();
  v_changing := {{swap}}.changing_link_views();
  v_deadline := clock_timestamp() + p_timeout::interval;
  v_views := {{swap}}.lock_views(
    array(select format('{{schema}}.%I', v_live.name)::regclass::oid where v_live.name is not null)
      || v_going, v_deadline);
  perform {{swap}}.lock_link_views(v_changing, v_deadline);
  if v_live.name is not null then
    perform {{swap}}.lock_relations(array[v_live.name], v_deadline);
    foreach one in array p_renames loop
      execute one;
    end loop;
  end if;
  perform {{swap}}.rename_link_views();
  v_views := {{swap}}.drop_views(v_views);
  perform {{swap}}.drop_link_views();
  if v_live.name is not null then
    perform {{swap}}.drop_table(v_live.name);
  end if;
  execute format('alter table {{swap}}.%I set schema {{schema}}', p_built);
  execute format('alter table {{schema}}.%I rename to %I', p_built, v_name);
  update {{swap}}._tables set columns_since = nextval('{{swap}}._tickets')
  where table_id = p_table ->> 'table_id';
  perform {{swap}}.make_link_views();
  perform {{swap}}.make_views(v_views);
  perform {{swap}}.adopt_orphans();
  if (select s.notify from {{swap}}._state as s) then
    perform {{swap}}.tell(jsonb_build_object('table', v_name, 'rebuilt', true));
  end if;
  return true;
end $swap$;

-- journal_since(table, stamp): entries after stamp. Under the table's lock, so that none with a smaller stamp than
-- the ones given can still be on its way.
create or replace function {{swap}}.journal_since(p_table text, p_stamp bigint) returns setof {{swap}}._journal
language plpgsql as $since$
begin
  perform {{swap}}.lock_table(p_table);
  return query select * from {{swap}}._journal as j where j.table_id = p_table and j.stamp > p_stamp;
end $since$;

-- trim_journal(up to): forgets notes no image can need any more, and refuses images older than them from now on.
create or replace function {{swap}}.trim_journal(p_upto bigint) returns void language plpgsql as $trim$
begin
  if exists (select from {{swap}}._journal as j where j.stamp <= p_upto) then
    update {{swap}}._state set journal_floor = greatest(journal_floor, p_upto);
    delete from {{swap}}._journal as j where j.stamp <= p_upto;
  end if;
end $trim$;

-- shape_build(…): runs the DDL of a table that is being built, which nobody else sees.
create or replace function {{swap}}.shape_build(p_epoch bigint, p_statements text[]) returns void
language plpgsql as $shape_build$
declare
  one text;
begin
  perform {{swap}}.fence(p_epoch);
  foreach one in array p_statements loop
    execute one;
  end loop;
end $shape_build$;

-- append_rows(…): writes mapped rows into a table that is being built, with the statement the builder made for it.
create or replace function {{swap}}.append_rows(p_epoch bigint, p_statement text, p_rows json, p_gone text[])
returns void language plpgsql as $append$
begin
  perform {{swap}}.fence(p_epoch);
  execute p_statement using p_rows, p_gone;
end $append$;

-- mark_sync(epoch, completed): a sync starts, or has completed, now.
create or replace function {{swap}}.mark_sync(p_epoch bigint, p_completed boolean) returns void
language plpgsql as $mark$
begin
  perform {{swap}}.fence(p_epoch);
  if p_completed then
    update {{schema}}._sync_meta
    set completed_at = clock_timestamp(), duration_last = clock_timestamp() - started_at;
  else
    update {{schema}}._sync_meta set started_at = clock_timestamp();
  end if;
end $mark$;

-- mark_sync_started(epoch, ago): a sync is under way that started so long ago.
create or replace function {{swap}}.mark_sync_started(p_epoch bigint, p_ago interval) returns void
language plpgsql as $mark_started$
begin
  perform {{swap}}.fence(p_epoch);
  update {{schema}}._sync_meta set started_at = clock_timestamp() - p_ago;
end $mark_started$;

-- mark_sync_ended(epoch): the sync under way has ended without completing.
create or replace function {{swap}}.mark_sync_ended(p_epoch bigint) returns void
language plpgsql as $mark_ended$
begin
  perform {{swap}}.fence(p_epoch);
  perform {{swap}}.forget_started();
end $mark_ended$;
