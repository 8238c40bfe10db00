-- Applies row images of records, and keeps the recent-writes log of the latest ones. Installed with install.sql.

-- record_issues(table name, records, issues): replaces the issues of these records.
create or replace function {{swap}}.record_issues(p_name text, p_ids text[], p_issues json) returns void
language plpgsql as $issues$
begin
  delete from {{swap}}._sync_issues as old
  where old.table_name = p_name and old.record_id = any (p_ids)
    and not exists (
      select from json_to_recordset(p_issues) as new (record_id text, field text)
      where new.record_id = old.record_id and new.field = old.field
    );
  insert into {{swap}}._sync_issues as old (table_name, record_id, field, value, reason)
  select p_name, new.record_id, new.field, new.value, new.reason
  from json_to_recordset(p_issues) as new (record_id text, field text, value text, reason text)
  where new.record_id = any (p_ids)
  on conflict (table_name, record_id, field) do update
    set value = excluded.value, reason = excluded.reason, seen_at = now()
    where (old.value, old.reason) is distinct from (excluded.value, excluded.reason);
end $issues$;

-- record_unreadable(epoch, kind, table, issues): records what of the source's answers cannot be read. These replace what
-- was recorded before; a record's own issue goes with its next row image.
--   all          of everything     definitions  of the schema
--   records      of records of the table whose id cannot be read either
--   more         nothing is replaced
create or replace function {{swap}}.record_unreadable(p_epoch bigint, p_kind text, p_table text, p_issues json) returns void
language plpgsql as $record_unreadable$
begin
  perform {{swap}}.fence(p_epoch);
  delete from {{swap}}._sync_issues as old
  where old.record_id = '' and old.reason like 'unreadable: %' and case p_kind
      when 'all' then true
      when 'definitions' then old.field <> 'record'
      when 'records' then old.field = 'record' and old.table_name = p_table
      else false end
    and not exists (
      select from json_to_recordset(p_issues) as new (table_name text, record_id text, field text)
      where (new.table_name, new.record_id, new.field) = (old.table_name, old.record_id, old.field)
    );
  insert into {{swap}}._sync_issues as old (table_name, record_id, field, value, reason)
  select new.table_name, new.record_id, new.field, '', 'unreadable: ' || new.reason
  from json_to_recordset(p_issues) as new (table_name text, record_id text, field text, reason text)
  on conflict (table_name, record_id, field) do update set value = '', reason = excluded.reason, seen_at = now()
    where old.reason is distinct from excluded.reason;
end $record_unreadable$;

-- apply_row_images(…): applies row images of records of one table, all requested after one read version was taken, and
-- returns which lost. An image loses if another image of its record was applied after its read version was taken: which
-- of the two is newer cannot be known (I1, I2). BT002: the table has another shape than the rows were mapped for.
-- BT003: somebody else's table has taken its place.
--   p_rows    mapped rows for apply_sql      p_ids     their ids
--   p_gone    ids that the source no longer has
--   p_row_images  the source's records by id, for the recent-writes log; null from a sweep, which records only changes
-- Everything is one statement of the client: no process can freeze between its locks.
create or replace function {{swap}}.apply_row_images(
  p_epoch bigint, p_table text, p_shape integer, p_read_version bigint,
  p_rows json, p_ids text[], p_gone text[], p_issues json, p_row_images jsonb,
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
  prepared name;
begin
  perform {{swap}}.fence(p_epoch);
  perform {{swap}}.lock_table(p_table);
  select * into target from {{swap}}._tables as t where t.table_id = p_table;
  if target.shape is distinct from p_shape then
    raise exception 'table % has shape %, not %', p_table, target.shape, p_shape using errcode = 'BT002';
  end if;

  perform {{swap}}.own_table(target.name);
  select coalesce(array_agg(j.record_id), '{}') into lost
  from {{swap}}._recent_writes as j
  where j.table_id = p_table and j.applied_version > p_read_version
    and (j.record_id = any (p_ids) or j.record_id = any (p_gone));
  -- Read after the recent-writes log: if entries were trimmed before the log was read, the floor read now is past them.
  select * into state from {{swap}}._state;
  -- I6. Images requested before the table had its columns would leave new ones empty.
  if p_read_version < greatest(target.columns_since, state.recent_writes_floor) then
    lost := p_ids || p_gone;
  end if;

  kept_ids := array(select id from unnest(p_ids) as id where id <> all (lost));
  if cardinality(kept_ids) > 0 then
    if state.history then
      rows_before := {{swap}}.rows_of(target.name, kept_ids);
    end if;
    if p_epoch is null then
      -- A client waits for a proxied write, and planning takes longer than the rest of this function. A prepared
      -- statement keeps its plan for the session; it is planned again when the table or its statistics change.
      prepared := 'apply_' || md5(target.apply_sql);
      if not exists (select from pg_prepared_statements as p where p.name = prepared) then
        execute format('prepare %I (json, text[]) as %s', prepared, target.apply_sql);
      end if;
      -- Otherwise the first five executions are planned, too, and no plan depends on the values.
      perform set_config('plan_cache_mode', 'force_generic_plan', true);
      execute format('execute %I (%L, %L)', prepared, p_rows, lost) into inserted_ids, updated_ids;
    else
      -- With the default of 4, which is for spinning disks, the planner reads all of a table of thousands of rows for each
      -- page. That takes twice as long if the table is cached, and several times as long if it is not.
      perform set_config('random_page_cost', '1.1', true);
      execute target.apply_sql into inserted_ids, updated_ids using p_rows, lost;
    end if;
    if state.history then
      perform {{swap}}.record_changes(target, v_by, rows_before, inserted_ids, updated_ids);
    end if;
  end if;
  if cardinality(p_gone) > 0 then
    if state.history then
      perform {{swap}}.record_deletes(target.name, v_by, array(select id from unnest(p_gone) as id where id <> all (lost)));
    end if;
    execute format(
      'with gone as (delete from {{schema}}.%I where id = any ($1) and id <> all ($2) returning id)
       select coalesce(array_agg(id), ''{}'') from gone', target.name
    ) into deleted_ids using p_gone, lost;
  end if;
  perform {{swap}}.record_issues(target.name, kept_ids || deleted_ids, p_issues);

  if p_row_images is null then
    noted_ids := inserted_ids || updated_ids || deleted_ids;
  else
    noted_ids := kept_ids || array(select id from unnest(p_gone) as id where id <> all (lost));
  end if;
  if cardinality(noted_ids) > 0 then
    insert into {{swap}}._recent_writes as j (table_id, record_id, applied_version, gone, image, read_version, written)
    select p_table, id, nextval('{{swap}}._versions'), id = any (p_gone), p_row_images -> id, p_read_version, p_row_images is not null
    from unnest(noted_ids) as id
    on conflict (table_id, record_id) do update
      set applied_version = excluded.applied_version, gone = excluded.gone, image = excluded.image, read_version = excluded.read_version,
        written = j.written or excluded.written;
  end if;

  if state.notify then
    perform {{swap}}.notify_changes(target.name, inserted_ids || updated_ids || deleted_ids);
  end if;
  inserted := cardinality(inserted_ids);
  updated := cardinality(updated_ids);
  deleted := cardinality(deleted_ids);
end $apply$;

-- record_row_image(…): stores an image of a record whose table is not built yet, for the rebuild that is reading it.
-- False if the image lost to one recorded after its read version was taken. BT002: the table exists by now.
create or replace function {{swap}}.record_row_image(
  p_table text, p_read_version bigint, p_id text, p_gone boolean, p_row_image jsonb
) returns boolean language plpgsql as $record_row_image$
begin
  perform {{swap}}.fence(null);
  perform {{swap}}.lock_table(p_table);
  if exists (select from {{swap}}._tables as t where t.table_id = p_table) then
    raise exception 'table % already exists', p_table using errcode = 'BT002';
  end if;
  insert into {{swap}}._recent_writes as j (table_id, record_id, applied_version, gone, image, read_version, written)
  values (p_table, p_id, nextval('{{swap}}._versions'), p_gone, p_row_image, p_read_version, true)
  on conflict (table_id, record_id) do update
    set applied_version = excluded.applied_version, gone = excluded.gone, image = excluded.image, read_version = excluded.read_version, written = true
    where j.applied_version <= p_read_version;
  return found;
end $record_row_image$;

-- recent_writes_since(table, applied_version): entries after applied_version. Takes the table's lock, so that no entry
-- with a smaller applied_version than the returned ones can still be uncommitted.
create or replace function {{swap}}.recent_writes_since(p_table text, p_applied_version bigint) returns setof {{swap}}._recent_writes
language plpgsql as $since$
begin
  perform {{swap}}.lock_table(p_table);
  return query select * from {{swap}}._recent_writes as j where j.table_id = p_table and j.applied_version > p_applied_version;
end $since$;

-- trim_recent_writes(epoch, up to): deletes entries that no image can need any longer, and refuses older images from
-- now on. Skips locked entries: another writer is about to give them a later applied_version, or they are deleted the
-- next time. Waiting for them could deadlock with a writer that needs other entries of this statement next.
create or replace function {{swap}}.trim_recent_writes(p_epoch bigint, p_upto bigint) returns void
language plpgsql as $trim$
begin
  perform {{swap}}.fence(p_epoch);
  if exists (select from {{swap}}._recent_writes as j where j.applied_version <= p_upto) then
    update {{swap}}._state set recent_writes_floor = greatest(recent_writes_floor, p_upto);
    delete from {{swap}}._recent_writes as j using (
      select o.table_id, o.record_id from {{swap}}._recent_writes as o where o.applied_version <= p_upto for update of o skip locked
    ) as old
    where (j.table_id, j.record_id) = (old.table_id, old.record_id);
  end if;
end $trim$;
