-- Records and publishes changes, by the base's settings: _sync_history, and notifications. Installed with install.sql.
--
-- Both happen in the statement that changes the rows, so they report exactly the changes that happened.

-- make_history(): creates the table in which changes are recorded. False if its name belongs to somebody else.
create or replace function {{swap}}.make_history() returns boolean language plpgsql as $make_history$
begin
  if not {{swap}}.bind_shown('_sync_history', '{id, seen_at, table_name, record_id, operation, old, new, by}') then
    create table {{swap}}._sync_history (
      id bigint generated always as identity,
      seen_at timestamptz not null,
      table_name text not null,
      record_id text not null,
      operation text not null,
      old jsonb,
      new jsonb,
      by text not null,
      constraint _sync_history_pkey primary key (id),
      constraint _sync_history_operation_check check (operation in ('insert', 'update', 'delete')),
      constraint _sync_history_by_check check (by in ('sync', 'proxy'))
    );
    create index _sync_history_by_time on {{swap}}._sync_history (seen_at);
    create index _sync_history_by_record on {{swap}}._sync_history (record_id);
    comment on table {{swap}}._sync_history is
      'Changes of records: old and new values of the changed columns, from a sync or from a write through the proxy.';
    perform {{swap}}.show_table('_sync_history');
  end if;
  return true;
exception when sqlstate 'BT003' then
  return false;
end $make_history$;

-- apply_settings(epoch, history, notify, alias_days): enables or disables recording and notifications from now on, and
-- sets for how long old names answer. False if history is enabled and cannot be recorded; _sync_issues then says so.
create or replace function {{swap}}.apply_settings(
  p_epoch bigint, p_history boolean, p_notify boolean, p_alias_days integer
) returns boolean language plpgsql set plan_cache_mode = force_generic_plan as $apply_settings$
declare
  v_history boolean := p_history;
begin
  perform {{swap}}.fence(p_epoch);
  perform {{swap}}.forget_views();
  perform {{swap}}.forget_carried();
  update {{swap}}._state as s set alias_days = p_alias_days where s.alias_days <> p_alias_days;
  if found then
    update {{swap}}._aliases as a set expires_at = a.made_at + make_interval(days => p_alias_days);
  end if;
  if p_history and (
    not (select s.history from {{swap}}._state as s) or to_regclass('{{swap}}._sync_history') is null
  ) then
    v_history := {{swap}}.make_history();
  end if;
  update {{swap}}._state as s set history = v_history, notify = p_notify
  where (s.history, s.notify) is distinct from (v_history, p_notify);
  delete from {{swap}}._sync_issues where table_name = '_sync_history' and v_history = p_history;
  if v_history <> p_history then
    insert into {{swap}}._sync_issues (table_name, record_id, field, value, reason)
    values ('_sync_history', '', '', '', 'history is not recorded: another table has this name')
    on conflict do nothing;
  end if;
  return v_history = p_history;
end $apply_settings$;

-- trim_history(epoch, days, most): deletes up to `most` older changes and returns how many. If history is off and the
-- table is empty, the table is dropped.
create or replace function {{swap}}.trim_history(p_epoch bigint, p_days integer, p_most integer) returns integer
language plpgsql as $trim_history$
declare
  trimmed integer;
begin
  perform {{swap}}.fence(p_epoch);
  if to_regclass('{{swap}}._sync_history') is null then
    return 0;
  end if;
  delete from {{swap}}._sync_history as h where h.id = any (array(
    select o.id from {{swap}}._sync_history as o where o.seen_at < now() - make_interval(days => p_days)
    order by o.seen_at limit p_most));
  get diagnostics trimmed = row_count;
  if not (select s.history from {{swap}}._state as s) and not exists (select from {{swap}}._sync_history) then
    perform {{swap}}.drop_history();
  end if;
  return trimmed;
end $trim_history$;

-- drop_history(): drops its table, unless the customer has created something on top of it, or somebody reads it now.
create or replace function {{swap}}.drop_history() returns void language plpgsql as $drop_history$
begin
  perform {{swap}}.own_table('_sync_history');
  perform {{swap}}.lock_exclusively('{{schema}}._sync_history', {{swap}}.soon());
  drop view {{swap}}._sync_history;
  drop table {{schema}}._sync_history;
  perform {{swap}}.may_change('{}');
exception when dependent_objects_still_exist or lock_not_available or deadlock_detected or sqlstate 'BT007' then null;
end $drop_history$;

-- forget_cells(epoch, table id, name, fields, columns): removes the values of these columns from recorded changes, and
-- those of the fields from the recent-writes log unless they are hashes. Null: all values of the table; without a name, the
-- recorded changes stay. Skips entries of the log that a writer holds, which could deadlock.
create or replace function {{swap}}.forget_cells(
  p_epoch bigint, p_table_id text, p_name text, p_fields text[], p_columns text[]
) returns void language plpgsql as $forget_cells$
begin
  perform {{swap}}.fence(p_epoch);
  if p_fields is null then
    update {{swap}}._recent_writes as w set image = null from (
      select j.record_id from {{swap}}._recent_writes as j
      where j.table_id = p_table_id and j.image is not null for update of j skip locked
    ) as found
    where w.table_id = p_table_id and w.record_id = found.record_id;
  end if;
  -- One pass for all fields: a base may hide hundreds.
  update {{swap}}._recent_writes as w set image = jsonb_set(w.image, '{fields}', (
    select coalesce(jsonb_object_agg(f.key, f.value), '{}') from jsonb_each(w.image -> 'fields') as f
    where f.key <> all (p_fields) or f.value #>> '{}' ~ '^[0-9a-f]{64}$'))
  from (
    select j.record_id from {{swap}}._recent_writes as j
    where j.table_id = p_table_id and j.image -> 'fields' ?| p_fields and exists (
      select from jsonb_each_text(j.image -> 'fields') as f where f.key = any (p_fields) and f.value !~ '^[0-9a-f]{64}$')
    for update of j skip locked
  ) as found
  where w.table_id = p_table_id and w.record_id = found.record_id;
  if p_name is null or to_regclass('{{swap}}._sync_history') is null then
    return;
  elsif p_columns is null then
    delete from {{swap}}._sync_history where table_name = p_name;
  else
    update {{swap}}._sync_history as h set old = h.old - p_columns, new = h.new - p_columns
    where h.table_name = p_name and (h.old ?| p_columns or h.new ?| p_columns);
  end if;
end $forget_cells$;

-- signed_columns(columns of a spec): names of columns whose texts may be signed URLs, which change at every read.
create or replace function {{swap}}.signed_columns(p_columns jsonb) returns text[] language sql as $signed$
  select array(
    select c.name from jsonb_to_recordset(p_columns) as c (name text, type text, result text)
    where c.type in ('attachment', 'unknown')
      or c.type in ('formula', 'lookup', 'rollup')
        and coalesce(c.result, 'unknown') in ('attachment', 'unknown', 'formula', 'lookup', 'rollup'))
$signed$;

-- is_same_host(url, url): false for anything that is not a URL.
create or replace function {{swap}}.is_same_host(p_one text, p_other text) returns boolean language sql immutable as $same_host$
  select coalesce(
    substring(p_one from '^https?://[^/]+/') = substring(p_other from '^https?://[^/]+/'), false)
$same_host$;

-- is_same_files(old, new): returns whether the new value may equal the old one except for the signatures of URLs. Only
-- the host is certain to be the same in the URLs of one file.
create or replace function {{swap}}.is_same_files(p_old jsonb, p_new jsonb) returns boolean language sql stable as $same$
  select case
    when jsonb_typeof(p_old) = 'array' and jsonb_typeof(p_new) = 'array' then
      jsonb_array_length(p_old) = jsonb_array_length(p_new) and not exists (
        select from jsonb_array_elements_text(p_old) with ordinality as o (url, nth)
          join jsonb_array_elements_text(p_new) with ordinality as n (url, nth) using (nth)
        where o.url is distinct from n.url and not {{swap}}.is_same_host(o.url, n.url))
    else {{swap}}.is_same_host(p_old #>> '{}', p_new #>> '{}')
  end
$same$;

-- differences(old row, new row, names, signed): the text of a query for the columns that differ, under their new names;
-- null if none does. The arguments are columns and parameters of the enclosing statement, which has no `cell` or
-- `name`:
--   p_names   old name to new name, of the columns to compare; null: all, and none was renamed
--   p_signed  columns whose signatures are ignored
-- It is a text because Postgres calls a function with a pinned search path once per row. The rows must be columns
-- there, not expressions, which would be computed again for every column.
create or replace function {{swap}}.differences(p_old text, p_new text, p_names text, p_signed text) returns text
language sql as $differences$
  select format(
    'select jsonb_object_agg(name.key, cell.value) as old, jsonb_object_agg(name.key, %2$s -> name.key) as new
     from jsonb_each(%1$s) as cell
       cross join lateral (
         select case when %3$s::jsonb is null then cell.key else %3$s::jsonb ->> cell.key end
       ) as name (key)
     where %2$s ? name.key and cell.value is distinct from %2$s -> name.key
       and not (name.key = any (%4$s) and {{swap}}.is_same_files(cell.value, %2$s -> name.key))',
    p_old, p_new, p_names, p_signed)
$differences$;

-- rows_of(table, ids): these rows, before they change.
create or replace function {{swap}}.rows_of(p_name text, p_ids text[]) returns jsonb[] language plpgsql as $rows_of$
declare
  found jsonb[];
begin
  execute format('select array_agg(to_jsonb(t.*)) from {{schema}}.%I as t where t.id = any ($1)', p_name)
    into found using p_ids;
  return coalesce(found, '{}');
end $rows_of$;

-- record_changes(...): records rows that were inserted, and rows that were updated (p_before has their old values).
create or replace function {{swap}}.record_changes(
  p_table {{swap}}._tables, p_by text, p_before jsonb[], p_inserted text[], p_updated text[]
) returns void language plpgsql as $record_changes$
begin
  execute format(
    'with updated as materialized (
       select t.id, b.was, to_jsonb(t.*) - $7 as now
       from unnest($5) as b (was) join {{schema}}.%1$I as t on t.id = b.was ->> ''id'' where t.id = any ($4)
     )
     insert into {{swap}}._sync_history (seen_at, table_name, record_id, operation, old, new, by)
     select clock_timestamp(), $1, t.id, ''insert'', null, jsonb_strip_nulls(to_jsonb(t.*) - ''id'' - $7), $2
     from {{schema}}.%1$I as t where t.id = any ($3)
     union all
     select clock_timestamp(), $1, u.id, ''update'', d.old, d.new, $2
     from updated as u cross join lateral (%2$s) as d
     where d.new is not null', p_table.name, {{swap}}.differences('u.was', 'u.now', 'null', '$6')
  ) using p_table.name, p_by, p_inserted, p_updated, p_before,
    {{swap}}.signed_columns(p_table.spec -> 'columns'), {{swap}}.alias_names(p_table.name);
end $record_changes$;

-- record_deletes(...): records rows that are about to be deleted.
create or replace function {{swap}}.record_deletes(p_name text, p_by text, p_ids text[]) returns void
language plpgsql as $record_deletes$
begin
  execute format(
    'insert into {{swap}}._sync_history (seen_at, table_name, record_id, operation, old, by)
     select clock_timestamp(), $1, t.id, ''delete'', jsonb_strip_nulls(to_jsonb(t.*) - ''id'' - $4), $2
     from {{schema}}.%I as t where t.id = any ($3)', p_name) using p_name, p_by, p_ids, {{swap}}.alias_names(p_name);
end $record_deletes$;

-- record_first(built, name): records the rows of a table that is about to be moved in.
create or replace function {{swap}}.record_first(p_built text, p_name text) returns void language plpgsql as $record_first$
begin
  execute format(
    'insert into {{swap}}._sync_history (seen_at, table_name, record_id, operation, new, by)
     select clock_timestamp(), $1, n.id, ''insert'', jsonb_strip_nulls(to_jsonb(n.*) - ''id''), ''sync''
     from {{swap}}.%I as n', p_built) using p_name;
end $record_first$;

-- record_merge(live, built, table): records the rows in which a table that is about to be merged differs from the live one.
-- Columns that only one of them has, or that changed type or became hashes, are not compared: the shape changed, not the
-- records.
create or replace function {{swap}}.record_merge(p_live {{swap}}._tables, p_built text, p_table jsonb) returns void
language plpgsql as $record_merge$
declare
  v_names jsonb;
  v_live_columns text;
  v_built_columns text;
begin
  select jsonb_object_agg(o.name, n.name) || '{"created_time": "created_time"}',
    string_agg(format(', l.%I', o.name), '' order by o.name),
    string_agg(format(', n.%I', n.name), '' order by o.name)
  into v_names, v_live_columns, v_built_columns
  from jsonb_to_recordset(p_live.spec -> 'columns') as o ("fieldId" text, name text, "columnType" text, type text)
    join jsonb_to_recordset(p_table #> '{spec,columns}') as n ("fieldId" text, name text, "columnType" text, type text)
      using ("fieldId", "columnType")
  where (o.type = 'hashed') = (n.type = 'hashed');
  execute format(
    'with other as materialized (
       select coalesce(n.id, l.id) as id, to_jsonb(l.*) - ''id'' - $4 as was, to_jsonb(n.*) - ''id'' as now,
         case when l.id is null then ''insert'' when n.id is null then ''delete'' else ''update'' end as operation
       from only {{schema}}.%I as l full join {{swap}}.%I as n on n.id = l.id
       where row(l.id, l.created_time%s) is distinct from row(n.id, n.created_time%s)
     )
     insert into {{swap}}._sync_history (seen_at, table_name, record_id, operation, old, new, by)
     select clock_timestamp(), $1, o.id, o.operation, d.old, d.new, ''sync''
     from other as o cross join lateral (%s) as d
     where o.operation = ''update'' and d.new is not null
     union all
     select clock_timestamp(), $1, o.id, o.operation,
       case o.operation when ''delete'' then jsonb_strip_nulls(o.was) end,
       case o.operation when ''insert'' then jsonb_strip_nulls(o.now) end, ''sync''
     from other as o where o.operation <> ''update''',
    p_live.name, p_built, v_live_columns, v_built_columns, {{swap}}.differences('o.was', 'o.now', '$2', '$3')
  ) using p_table ->> 'name', coalesce(v_names, '{"created_time": "created_time"}'),
    {{swap}}.signed_columns(p_table #> '{spec,columns}'), {{swap}}.alias_names(p_live.name);
end $record_merge$;

-- notify_listeners(payload): notifies listeners; the payload names the schema if it is not "public". Does nothing while slow
-- listeners have let half of the server's queue fill up: a full queue would fail the writes.
create or replace function {{swap}}.notify_listeners(p_payload jsonb) returns void language plpgsql as $notify_listeners$
declare
  v_schema text := left({{swap_text}}, -length('_swap'));
begin
  if pg_notification_queue_usage() < 0.5 then
    execute format('notify basetide, %L',
      case v_schema when 'public' then p_payload else p_payload || jsonb_build_object('schema', v_schema) end);
  end if;
end $notify_listeners$;

-- notify_rebuilt(table): notifies listeners, if the setting says so, that the table has other columns, or is another one.
create or replace function {{swap}}.notify_rebuilt(p_name text) returns void language sql as $notify_rebuilt$
  select {{swap}}.notify_listeners(jsonb_build_object('table', p_name, 'rebuilt', true))
  from {{swap}}._state as s where s.notify
$notify_rebuilt$;

-- notify_changes(table, ids): sends as many notifications as needed: each is shorter than 8,000 bytes.
create or replace function {{swap}}.notify_changes(p_name text, p_ids text[]) returns void
language plpgsql as $notify_changes$
declare
  v_ids jsonb;
begin
  for v_ids in
    select jsonb_agg(numbered.id order by numbered.nth)
    from (
      select id, nth, sum(octet_length(to_json(id)::text) + 2) over (order by nth) / 7000 as part
      from unnest(p_ids) with ordinality as i (id, nth)
      where octet_length(id) < 500
    ) as numbered
    group by floor(numbered.part)
  loop
    perform {{swap}}.notify_listeners(jsonb_build_object('table', p_name, 'ids', v_ids));
  end loop;
end $notify_changes$;

-- Somebody may have dropped it.
update {{swap}}._state set history = {{swap}}.make_history() where history;
