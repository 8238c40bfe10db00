-- Manages the indexes of the base's setting, on columns of our tables. Installed with install.sql.
--
-- They are created concurrently, which blocks no reader or writer and which Postgres does only outside of a
-- transaction: index_changes returns the statements, and the caller runs them. The new column of a field that gets another
-- type already has its own, like all others' (column-parts.sql).

create table if not exists {{swap}}._indexes (
  name text not null,
  table_id text not null,
  field_id text not null,
  -- The wanted definition, in the form of pg_get_indexdef.
  definition text not null,
  -- Why and when it could not be created: it is not tried again soon.
  failure text,
  failed_at timestamptz,
  constraint _indexes_pkey primary key (name)
);

-- index_name(table, field): derived from the ids, so it is independent of their names. The first one that no object of
-- somebody else's has.
create or replace function {{swap}}.index_name(p_table text, p_field text) returns text
language plpgsql stable as $index_name$
declare
  v_name text := case when octet_length(p_table || p_field) <= 57 then format('_%s_%s_idx', p_table, p_field)
    else '_' || md5(p_table || ' ' || p_field) || '_idx' end;
begin
  for nth in 2 .. 1000 loop
    exit when {{swap}}.own_relation(v_name, 'i') is not null or not exists (
      select from pg_class as c where c.relnamespace = '{{schema}}'::regnamespace and c.relname = v_name);
    v_name := '_' || md5(format('%s %s %s', p_table, p_field, nth)) || '_idx';
  end loop;
  return v_name;
end $index_name$;

-- trigram_class(): the operator class of the extension pg_trgm; null if the extension is not installed. Somebody else's
-- class of that name is not part of the extension.
create or replace function {{swap}}.trigram_class() returns text language sql stable as $trigram_class$
  select format('%I.%I', n.nspname, o.opcname)
  from pg_extension as e
    join pg_depend as d on d.refclassid = 'pg_extension'::regclass and d.refobjid = e.oid and d.deptype = 'e'
      and d.classid = 'pg_opclass'::regclass
    join pg_opclass as o on o.oid = d.objid and o.opcname = 'gin_trgm_ops'
    join pg_namespace as n on n.oid = o.opcnamespace
  where e.extname = 'pg_trgm'
$trigram_class$;

-- wanted_indexes(wanted): [{table_id, field_id, kind}], with the current names, for columns that exist.
-- `obstacle`: why the index is impossible.
create or replace function {{swap}}.wanted_indexes(p_wanted jsonb) returns table (
  table_id text, field_id text, table_name text, column_name text, name text, target text, method text, obstacle text
) language sql as $wanted_indexes$
  select w.table_id, w.field_id, t.name, a.attname, {{swap}}.index_name(w.table_id, w.field_id), c.oid::regclass::text,
    case when w.kind = 'trigram' then format('gin (%I %s)', a.attname, {{swap}}.trigram_class())
      when a.atttypid = 'text[]'::regtype then format('gin (%I)', a.attname)
      else format('btree (%I)', a.attname) end,
    case when w.kind = 'trigram' and a.atttypid <> 'text'::regtype then 'a trigram index requires a column of type text'
      when w.kind = 'trigram' and {{swap}}.trigram_class() is null then
        'a trigram index requires the extension pg_trgm: create extension pg_trgm' end
  from jsonb_to_recordset(p_wanted) as w (table_id text, field_id text, kind text)
    join {{swap}}._tables as t using (table_id)
    join pg_class as c on c.oid = to_regclass(format('{{schema}}.%I', t.name)) and c.relkind = 'r'
      and c.relowner = {{swap}}.our_role()
    left join jsonb_to_recordset(t.spec -> 'columns') as f ("fieldId" text, name text) on f."fieldId" = w.field_id
    join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      and a.attname = case w.field_id when 'created_time' then 'created_time' else f.name end
$wanted_indexes$;

-- index_changes(epoch, wanted): the statements, each to be run outside of a transaction, that make the setting's
-- indexes exactly these. Indexes that are impossible are listed in _sync_issues.
create or replace function {{swap}}.index_changes(p_epoch bigint, p_wanted jsonb) returns table (name text, statement text)
language plpgsql set plan_cache_mode = force_generic_plan as $index_changes$
declare
  one record;
begin
  perform {{swap}}.fence(p_epoch);
  insert into {{swap}}._indexes as known (name, table_id, field_id, definition)
  select w.name, w.table_id, w.field_id, format('CREATE INDEX %I ON %s USING %s', w.name, w.target, w.method)
  from {{swap}}.wanted_indexes(p_wanted) as w where w.obstacle is null
  on conflict on constraint _indexes_pkey do update set definition = excluded.definition, failure = null, failed_at = null
    where known.definition <> excluded.definition;
  -- Before entries are deleted from _indexes, which says which indexes are the setting's.
  perform {{swap}}.record_index_issues(p_wanted);
  for one in
    select i.*, x.indexrelid is not null as is_there,
      x.indisvalid and pg_get_indexdef(x.indexrelid) = i.definition and w.name is not null as is_right,
      exists (select from pg_stat_progress_create_index as p where p.index_relid = x.indexrelid) as is_under_way,
      w.name is not null and w.obstacle is null as is_wanted
    from {{swap}}._indexes as i
      left join {{swap}}.wanted_indexes(p_wanted) as w on w.name = i.name
      left join pg_index as x on x.indexrelid = {{swap}}.own_relation(i.name, 'i')
    order by i.name
  loop
    continue when one.is_under_way or one.is_right and one.is_wanted;
    if one.is_there then
      name := one.name;
      statement := format('drop index concurrently {{schema}}.%I', one.name);
      return next;
    elsif not one.is_wanted then
      delete from {{swap}}._indexes as i where i.name = one.name;
    end if;
    if one.is_wanted and (one.failed_at is null or one.failed_at < now() - interval '1 hour') then
      name := one.name;
      statement := replace(one.definition, 'CREATE INDEX', 'CREATE INDEX CONCURRENTLY');
      return next;
    end if;
  end loop;
end $index_changes$;

-- record_index_issues(wanted): records why indexes are missing; removes issues of those that exist or are not wanted.
create or replace function {{swap}}.record_index_issues(p_wanted jsonb) returns void language plpgsql as $record_index_issues$
begin
  delete from {{swap}}._sync_issues as i
  where i.record_id = '' and (i.field like 'index on %' or exists (
    -- Indexes that do not fit a new column are created again here.
    select from {{swap}}._indexes as x where i.field = 'index ' || x.name));
  insert into {{swap}}._sync_issues (table_name, record_id, field, value, reason)
  select w.table_name, '', 'index on ' || w.column_name, '', coalesce(w.obstacle, i.failure)
  from {{swap}}.wanted_indexes(p_wanted) as w left join {{swap}}._indexes as i on i.name = w.name
  where coalesce(w.obstacle, i.failure) is not null
  on conflict do nothing;
end $record_index_issues$;

-- record_index_failure(epoch, name, failure): records it; the index is not tried again for an hour.
create or replace function {{swap}}.record_index_failure(p_epoch bigint, p_name text, p_failure text) returns void
language plpgsql as $record_index_failure$
begin
  perform {{swap}}.fence(p_epoch);
  update {{swap}}._indexes as i set failure = p_failure, failed_at = now() where i.name = p_name;
end $record_index_failure$;

-- drop_full_indexes(epoch, table, message): if Postgres refuses a row because an index cannot hold its value, the index
-- is dropped so that the row can be written. The message names the index, or none: then all candidates are dropped, and
-- those that were not the cause are created again. Returns whether there were any.
create or replace function {{swap}}.drop_full_indexes(p_epoch bigint, p_table text, p_message text) returns boolean
language plpgsql as $drop_full_indexes$
declare
  v_all text[];
  v_names text[];
  one text;
begin
  perform {{swap}}.fence(p_epoch);
  v_all := array(
    select i.name from {{swap}}._indexes as i
    where i.table_id = p_table and {{swap}}.own_relation(i.name, 'i') is not null);
  v_names := array(select n from unnest(v_all) as n where strpos(p_message, n) > 0);
  if v_names = '{}' then
    v_names := v_all;
  end if;
  perform {{swap}}.lock_exclusively(format('{{schema}}.%I', t.name), clock_timestamp() + interval '2 seconds')
  from {{swap}}._tables as t where t.table_id = p_table and v_names <> '{}';
  foreach one in array v_names loop
    execute format('drop index {{schema}}.%I', one);
  end loop;
  return v_names <> '{}';
end $drop_full_indexes$;
