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

-- replace_issues(was, name, issues): replaces the issues of all records of the table; those of objects follow its name.
create or replace function {{swap}}.replace_issues(p_was text, p_name text, p_issues json) returns void
language sql as $replace_issues$
  delete from {{swap}}._sync_issues where table_name in (p_was, p_name) and record_id <> '';
  update {{swap}}._sync_issues as i set table_name = p_name
  where i.table_name = p_was and p_name <> p_was and not exists (
    select from {{swap}}._sync_issues as o where (o.table_name, o.record_id, o.field) = (p_name, i.record_id, i.field));
  insert into {{swap}}._sync_issues (table_name, record_id, field, value, reason)
  select p_name, i.record_id, i.field, i.value, i.reason
  from json_to_recordset(p_issues) as i (record_id text, field text, value text, reason text)
$replace_issues$;

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

-- apply_row_images_<table id>(...): applies row images of records of one table, all requested after one read version was
-- taken. Returns how many rows it changed (null: none), and which images lost. An image loses if another image of its
-- record was applied after its read version was taken: which of the two is newer cannot be known (I1, I2). BT001, BT006:
-- as fence(). BT002: the table has another shape than the rows were mapped for. BT003: somebody else's table has taken
-- its place.
--   p_rows    mapped rows           p_ids     their ids
--   p_gone    ids that the source no longer has
--   p_issues  null: none
--   p_row_images  the source's records by id, for the recent-writes log; null from a sweep, which records only changes
-- Everything is one statement of the client: no process can freeze between its locks.
--
-- Each table has its own, because planning a statement for its rows takes longer than the rest of the function: a session
-- plans the statements of a function once, and again when the table or its statistics change.

-- make_apply(table): creates or replaces that function, by the table's row of the catalog, unless it is as it must be. Every
-- change of shape calls it after the table's DDL; a session that is in the previous one finds that the shape has changed.
create or replace function {{swap}}.make_apply(p_table text) returns void
language plpgsql set check_function_bodies = off as $make_apply$
declare
  v_name text;
  v_columns text[];
  v_types text[];
  v_function text := 'apply_row_images_' || p_table;
  v_body text;
begin
  select t.name, '{id, created_time}'::text[] || array_agg(c.name order by c.name) filter (where c.name is not null),
    '{text, timestamp}'::text[] || array_agg(c.type order by c.name) filter (where c.name is not null)
  into v_name, v_columns, v_types
  from {{swap}}._tables as t left join lateral (
    -- In an order that does not depend on that of the fields.
    select quote_ident(c.name) collate "C", c."columnType"
    from jsonb_to_recordset(t.spec -> 'columns') as c (name text, "columnType" text)
  ) as c (name, type) on true
  where t.table_id = p_table group by t.name;
  v_body := format($apply$
<<images>>
declare
  v_is_fenced boolean;
  v_is_known boolean;
  v_shape integer;
  v_oldest bigint;
  v_relation oid;
  v_owner name;
  v_has_issues boolean;
  v_history boolean;
  v_notify boolean;
  v_before jsonb[];
  v_there text[];
  v_inserted text[];
  v_updated text[];
  v_deleted text[];
begin
  -- Of a function this short, each expression is a hundredth, and conditions cost less than statements. The keys are
  -- those of fence() and lock_table(); the locks are never null.
  if p_epoch is not null and pg_advisory_xact_lock_shared(%1$s) is null or pg_advisory_xact_lock(%2$s) is null then
    return;
  end if;
  loop
    -- Begins after the locks, and so sees what their last holders have committed. As in fence(), which takes over when
    -- one of its conditions is not met.
    select (p_epoch is null or s.epoch = p_epoch)
        and coalesce(s.timeline, '') || ' ' || s.incarnation = current_setting('basetide.server', true)
        and current_setting('transaction_isolation') = 'read committed'
        and current_setting('synchronous_commit') not in ('off', 'local', 'remote_write'),
      s.history, s.notify, t.shape, greatest(t.columns_since, s.recent_writes_floor), c.oid, pg_get_userbyid(c.relowner),
      array(
        select j.record_id from {{swap}}._recent_writes as j
        where j.table_id = %3$L and j.record_id = any (p_ids || p_gone) and j.applied_version > p_read_version),
      exists (select from {{swap}}._sync_issues as i where i.table_name = %4$L and i.record_id = any (p_ids || p_gone))
    into v_is_fenced, v_history, v_notify, v_shape, v_oldest, v_relation, v_owner, lost, v_has_issues
    from {{swap}}._state as s
      left join {{swap}}._tables as t on t.table_id = %3$L
      left join pg_class as c on c.relnamespace = '{{schema}}'::regnamespace and c.relname = %4$L;
    exit when v_is_fenced or v_is_known;
    -- Raises, or makes the server known to the session.
    perform {{swap}}.fence(p_epoch);
    v_is_known := true;
  end loop;
  if v_shape is distinct from p_shape or v_owner <> current_user or lost <> '{}' or p_read_version < v_oldest then
    if v_shape is distinct from p_shape then
      raise exception 'table %% has shape %%, not %%', %3$L, v_shape, p_shape using errcode = 'BT002';
    end if;
    perform {{swap}}.own_kind(%4$L);
    -- I6. Images requested before the table had its columns would leave new ones empty. Entries of the log that an image
    -- would lose to may have been trimmed.
    if p_read_version < v_oldest then
      lost := p_ids || p_gone;
    end if;
    p_ids := array(select i.id from unnest(p_ids) as i (id) where i.id <> all (lost));
    p_gone := array(select i.id from unnest(p_gone) as i (id) where i.id <> all (lost));
  end if;
  -- As in own_table().
  lock table {{schema}}.%4$I in access share mode;
  if to_regclass(%5$L) is distinct from v_relation then
    perform {{swap}}.own_kind(%4$L);
  end if;

  if v_history then
    v_before := {{swap}}.rows_of(%4$L, p_ids);
  end if;
  if p_ids <> '{}' then
    -- Columns may have any name, so what a statement with them uses is $1 (p_rows), $5 (p_ids), $6 (p_gone), or has a label.
    -- Not ON CONFLICT, which would lock, and so log, every row that has not changed (105 MB of WAL for 200,000 of them).
    -- The array finds the rows by their key: the planner expects a hundred rows of the function, and would read the table.
    with changed as (
      update {{schema}}.%4$I as t set %6$s
      from json_to_recordset($1) as s (%7$s)
      where t.id = any ($5) and t.id = s.id and row(%8$s) is distinct from row(%9$s)
      returning t.id
    )
    select array_agg(c.id), count(*) into v_updated, updated from changed as c;
    if updated < cardinality(p_ids) then
      v_there := array(select t.id from {{schema}}.%4$I as t where t.id = any ($5));
      if cardinality(v_there) < cardinality(p_ids) then
        with added as (
          insert into {{schema}}.%4$I as t (%10$s)
          select %11$s from json_to_recordset($1) as s (%7$s) where s.id = any ($5) and s.id <> all (images.v_there)
          returning t.id
        )
        select array_agg(a.id), count(*) into v_inserted, inserted from added as a;
      end if;
    end if;
  end if;
  if v_history or v_notify or v_has_issues or p_issues is not null or p_gone <> '{}' then
    if v_history then
      perform {{swap}}.record_changes(t, case when p_epoch is null then 'proxy' else 'sync' end, v_before, v_inserted, v_updated)
      from {{swap}}._tables as t where t.table_id = %3$L;
      perform {{swap}}.record_deletes(%4$L, case when p_epoch is null then 'proxy' else 'sync' end, p_gone);
    end if;
    with removed as (delete from {{schema}}.%4$I as t where t.id = any ($6) returning t.id)
    select array_agg(r.id), count(*) into v_deleted, deleted from removed as r;
    perform {{swap}}.record_issues(%4$L, p_ids || v_deleted, coalesce(p_issues, '[]'));
    if v_notify then
      perform {{swap}}.notify_changes(%4$L, v_inserted || v_updated || v_deleted);
    end if;
  end if;

  insert into {{swap}}._recent_writes as j (table_id, record_id, applied_version, gone, image, read_version, written)
  select %3$L, l.id, nextval('{{swap}}._versions'), l.id = any (p_gone), p_row_images -> l.id, p_read_version,
    p_row_images is not null
  from unnest(case when p_row_images is null then v_inserted || v_updated || v_deleted else p_ids || p_gone end) as l (id)
  on conflict (table_id, record_id) do update
    set applied_version = excluded.applied_version, gone = excluded.gone, image = excluded.image,
      read_version = excluded.read_version, written = j.written or excluded.written;
end $apply$,
      hashtextextended({{swap_text}} || ' epoch', 0), hashtextextended({{swap_text}} || ' table ' || p_table, 0),
      p_table, v_name, format('{{schema}}.%I', v_name),
      (select string_agg(format('%s = s.%1$s', c), ', ' order by nth) from unnest(v_columns) with ordinality as c (c, nth) where nth > 1),
      (select string_agg(format('%s %s', c, type), ', ' order by nth) from unnest(v_columns, v_types) with ordinality as c (c, type, nth)),
      't.' || array_to_string(v_columns[2:], ', t.'), 's.' || array_to_string(v_columns[2:], ', s.'),
      array_to_string(v_columns, ', '), 's.' || array_to_string(v_columns, ', s.'));
  if exists (
    select from pg_proc as p
    where p.pronamespace = '{{swap}}'::regnamespace and p.proname = v_function::name and p.prosrc = v_body
  ) then
    return;
  end if;
  execute format(
    -- Without plan_cache_mode, the first five executions are planned, too, and no plan depends on the values. The log and
    -- the table may be empty when the statements are planned.
    'create or replace function {{swap}}.%I(
       p_rows json, p_epoch bigint, p_shape integer, p_read_version bigint, p_ids text[], p_gone text[], p_issues json,
       p_row_images jsonb, out inserted integer, out updated integer, out deleted integer, out lost text[]
     ) language plpgsql set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
       set enable_seqscan = off as %L',
    v_function, v_body);
end $make_apply$;

-- Those of all tables are as this version of the template makes them.
do $apply_functions$
declare
  one regprocedure;
begin
  for one in
    select p.oid from pg_proc as p
    where p.pronamespace = '{{swap}}'::regnamespace and starts_with(p.proname, 'apply_row_images_')
  loop
    execute format('drop function %s', one);
  end loop;
  perform {{swap}}.make_apply(t.table_id) from {{swap}}._tables as t;
end $apply_functions$;

-- record_row_image(...): stores an image of a record whose table is not built yet, for the rebuild that is reading it.
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
