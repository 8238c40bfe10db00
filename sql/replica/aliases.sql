-- Old names that still answer: for some days after a rename, by the base's setting. Installed with install.sql.
--
-- An old table is a view with its old name. An old column is a virtual generated column on Postgres 18 and newer: no row
-- is written, and it follows its column. Before 18 it is a function of the table's row type, which answers `t.old`, but
-- not `old`. A table or a column that gets the name for itself takes it from the alias. An old name whose alias would do
-- harm is not kept: alias_obstacle.
--
-- They change in the transaction that renames: an old name is never missing. Customers' views over them are preserved
-- like those over tables (views.sql).

create table if not exists {{swap}}._aliases (
  -- The table whose column it was; empty for a table's name. A name is there once.
  scope text not null,
  name text not null,
  table_id text not null,
  -- null: the alias of a table
  field_id text,
  made_at timestamptz not null default now(),
  expires_at timestamptz not null,
  -- Of a table: the view, and the query that it was created with.
  view oid,
  definition text,
  constraint _aliases_pkey primary key (scope, name)
);

-- has_virtual_columns(): returns whether a column's alias is a column.
create or replace function {{swap}}.has_virtual_columns() returns boolean language sql stable as $has_virtual$
  select current_setting('server_version_num')::integer >= 180000
$has_virtual$;

-- record_aliases(tables): records the names that these rows of the catalog are about to lose.
create or replace function {{swap}}.record_aliases(p_tables jsonb) returns void language sql as $record_aliases$
  insert into {{swap}}._aliases as a (scope, name, table_id, field_id, expires_at)
  select l.scope, l.name, l.table_id, l.field_id, now() + make_interval(days => s.alias_days)
  from {{swap}}._state as s, (
    select '' as scope, t.name, t.table_id, null as field_id
    from jsonb_to_recordset(p_tables) as n (table_id text, name text)
      join {{swap}}._tables as t using (table_id) where t.name <> n.name
    union all
    select t.table_id, o.name, t.table_id, o."fieldId"
    from jsonb_to_recordset(p_tables) as n (table_id text, spec jsonb)
      join {{swap}}._tables as t using (table_id)
      cross join jsonb_to_recordset(t.spec -> 'columns') as o ("fieldId" text, name text)
      join jsonb_to_recordset(n.spec -> 'columns') as c ("fieldId" text, name text) using ("fieldId")
    where o.name <> c.name
  ) as l
  on conflict (scope, name) do update
    set table_id = excluded.table_id, field_id = excluded.field_id, made_at = now(), expires_at = excluded.expires_at
$record_aliases$;

-- wanted_aliases(): the aliases that should answer, by the catalog, with the names that they stand for.
create or replace function {{swap}}.wanted_aliases() returns table (
  scope text, name text, table_id text, field_id text, table_name text, column_name text, type text
) language sql stable as $wanted_aliases$
  select a.scope, a.name, a.table_id, a.field_id, t.name, c.name, c."columnType"
  from {{swap}}._aliases as a join {{swap}}._tables as t on t.table_id = a.table_id
    left join lateral jsonb_to_recordset(t.spec -> 'columns') as c ("fieldId" text, name text, "columnType" text)
      on c."fieldId" = a.field_id
  where a.expires_at > now() and case
    when a.field_id is null then not exists (select from {{swap}}._tables as o where o.name = a.name)
    else c.name is not null and not exists (
      select from jsonb_to_recordset(t.spec -> 'columns') as o (name text) where o.name = a.name)
  end
$wanted_aliases$;

-- alias_names(table name): the names of its columns that are aliases.
create or replace function {{swap}}.alias_names(p_name text) returns text[] language sql stable as $alias_names$
  select array(
    select a.name from {{swap}}._aliases as a join {{swap}}._tables as t on t.table_id = a.scope where t.name = p_name)
$alias_names$;

-- alias_columns(table, table_id): the columns of the table that are aliases, and whether something needs them.
create or replace function {{swap}}.alias_columns(p_table oid, p_table_id text)
returns table (attnum smallint, name name, is_needed boolean) language sql stable as $alias_columns$
  select c.attnum, c.attname, exists (
    select from pg_depend as d
    where d.refclassid = 'pg_class'::regclass and d.refobjid = p_table and d.refobjsubid = c.attnum
      and d.classid <> 'pg_attrdef'::regclass)
  from pg_attribute as c
  where c.attrelid = p_table and c.attnum > 0 and not c.attisdropped and c.attgenerated = 'v'
    and (starts_with(c.attname, '_alias_')
      or exists (select from {{swap}}._aliases as a where a.scope = p_table_id and a.name = c.attname))
$alias_columns$;

-- is_locked(table): returns whether this transaction has locked it exclusively.
create or replace function {{swap}}.is_locked(p_table oid) returns boolean language sql as $is_locked$
  select exists (
    select from pg_locks as l
    where l.locktype = 'relation' and l.relation = p_table and l.pid = pg_backend_pid() and l.granted
      and l.mode = 'AccessExclusiveLock')
$is_locked$;

-- relations_of(table ids): their live tables, by id: their names may be about to change.
create or replace function {{swap}}.relations_of(p_ids text[]) returns jsonb language sql stable as $relations_of$
  select coalesce(jsonb_object_agg(t.table_id, {{swap}}.live_table(t.name)), '{}')
  from {{swap}}._tables as t where t.table_id = any (p_ids)
$relations_of$;

-- own_alias_function(table, name): the function of ours that is the alias of a column; null if there is none.
create or replace function {{swap}}.own_alias_function(p_table oid, p_name text) returns oid
language sql stable as $own_alias_function$
  select p.oid from pg_class as c join pg_proc as p on p.pronargs = 1 and p.proargtypes[0] = c.reltype
  where c.oid = p_table and p.pronamespace = '{{schema}}'::regnamespace and p.proname = p_name
    and p.proowner = {{swap}}.our_role()
    -- The role may be the customer's, who has functions of their own.
    and starts_with(obj_description(p.oid, 'pg_proc'), 'The old name of the column ')
$own_alias_function$;

-- has_alias(table, name): returns whether the column's old name answers.
create or replace function {{swap}}.has_alias(p_table oid, p_name text) returns boolean language sql stable as $has_alias$
  select {{swap}}.own_alias_function(p_table, p_name) is not null or exists (
    select from pg_attribute as a
    where a.attrelid = p_table and a.attname = p_name and not a.attisdropped and a.attgenerated = 'v')
$has_alias$;

-- alias_obstacle(table, name): why an old name of a column of this table must not have an alias; null if it may.
--   A virtual column stops all updates and deletes of a published table whose replica identity is full.
--   A function that takes a row fits calls of other functions of its name better than they do themselves, such as
--   count(t), or makes them ambiguous, such as round('1.5'), in every query of the database.
create or replace function {{swap}}.alias_obstacle(p_table oid, p_name text) returns text
language sql stable as $alias_obstacle$
  select case when {{swap}}.has_virtual_columns() then (
      select 'the replica identity of the table is full: Postgres would refuse its updates'
      from pg_class as c where c.oid = p_table and c.relreplident = 'f')
    else (
      select format('the function %s has this name, and would no longer be found by all of its callers', p.oid::regprocedure)
      from pg_proc as p join pg_type as y on y.oid = p.proargtypes[0]
      where p.proname = p_name and p.pronamespace <> '{{swap}}'::regnamespace
        -- It can be called with one argument, other than a row of a certain table.
        and p.pronargs - p.pronargdefaults - (p.provariadic <> 0)::integer <= 1 and y.typtype <> 'c'
      order by p.oid limit 1) end
$alias_obstacle$;

-- clear_aliases(relations): removes the aliases of columns of these tables that the catalog no longer wants, or that an
-- obstacle has got, as far as this transaction has locked the tables. One that a view of the customer's needs gets a
-- name of ours, so that the old name is free.
create or replace function {{swap}}.clear_aliases(p_relations jsonb) returns void language plpgsql as $clear_aliases$
declare
  one record;
begin
  for one in
    select a.scope, a.name, r.value::oid as relation, w.name is not null as is_wanted
    from jsonb_each_text(p_relations) as r join {{swap}}._aliases as a on a.scope = r.key
      left join {{swap}}.wanted_aliases() as w on (w.scope, w.name) = (a.scope, a.name)
    where r.value is not null and {{swap}}.is_locked(r.value::oid)
      and (w.name is null or {{swap}}.alias_obstacle(r.value::oid, a.name) is not null)
  loop
    if not {{swap}}.has_virtual_columns() then
      perform {{swap}}.drop_alias_function(one.relation, one.name);
    elsif exists (
      select from {{swap}}.alias_columns(one.relation, one.scope) as c where c.name = one.name
    ) then
      begin
        execute format('alter table %s drop column %I', one.relation::regclass, one.name);
      exception when dependent_objects_still_exist then
        execute format('alter table %s rename column %I to %I', one.relation::regclass, one.name,
          '_alias_' || left(md5(one.name || clock_timestamp()), 16));
      end;
    end if;
    delete from {{swap}}._aliases as a where (a.scope, a.name) = (one.scope, one.name) and not one.is_wanted;
  end loop;
end $clear_aliases$;

-- drop_barring_aliases(epoch, table_id): drops all aliases of the table's columns if they keep Postgres from
-- writing its rows (alias_obstacle). Returns whether there were any. A view of the customer's that needs one becomes an
-- orphan.
create or replace function {{swap}}.drop_barring_aliases(p_epoch bigint, p_table text) returns boolean
language plpgsql as $drop_barring_aliases$
declare
  v_name text;
  v_relation oid;
  v_views jsonb[] := '{}';
  v_deadline timestamptz;
  one record;
begin
  perform {{swap}}.fence(p_epoch);
  perform {{swap}}.lock_table(p_table);
  select t.name, {{swap}}.live_table(t.name) into v_name, v_relation from {{swap}}._tables as t where t.table_id = p_table;
  if not exists (select from pg_class as c where c.oid = v_relation and c.relreplident = 'f')
    or not exists (select from {{swap}}.alias_columns(v_relation, p_table))
  then
    return false;
  end if;
  perform {{swap}}.wait_until({{swap}}.soon());
  perform {{swap}}.lock_for_links();
  v_deadline := {{swap}}.soon();
  if exists (select from {{swap}}.alias_columns(v_relation, p_table) as c where c.is_needed) then
    v_views := {{swap}}.lock_views(array[v_relation], v_deadline);
  end if;
  perform {{swap}}.lock_relations(array[v_name], v_deadline);
  v_views := {{swap}}.drop_views(v_views);
  perform {{swap}}.drop_link_views();
  for one in select c.name from {{swap}}.alias_columns(v_relation, p_table) as c loop
    execute format('alter table %s drop column %I', v_relation::regclass, one.name);
  end loop;
  perform {{swap}}.make_link_views();
  perform {{swap}}.make_views(v_views);
  perform {{swap}}.may_change('{}');
  return true;
end $drop_barring_aliases$;

-- drop_alias_function(table, name): one that something needs stays; if it hides other functions, under a name of ours.
create or replace function {{swap}}.drop_alias_function(p_table oid, p_name text) returns void
language plpgsql as $drop_alias_function$
begin
  if {{swap}}.own_alias_function(p_table, p_name) is not null then
    execute format('drop function {{schema}}.%I(%s)', p_name, p_table::regclass);
  end if;
exception when dependent_objects_still_exist then
  if {{swap}}.alias_obstacle(p_table, p_name) is not null then
    execute format('alter function {{schema}}.%I(%s) rename to %I', p_name, p_table::regclass,
      '_alias_' || left(md5(p_name || clock_timestamp()), 16));
  end if;
end $drop_alias_function$;

-- drop_alias_functions(table, table_id): before the table is replaced.
create or replace function {{swap}}.drop_alias_functions(p_table oid, p_table_id text) returns void
language sql as $drop_alias_functions$
  select {{swap}}.drop_alias_function(p_table, a.name) from {{swap}}._aliases as a where a.scope = p_table_id
$drop_alias_functions$;

-- drop_aliases_over(table, table_id, columns): drops the aliases of columns that get another type; make_alias_columns
-- creates them again.
create or replace function {{swap}}.drop_aliases_over(p_table oid, p_table_id text, p_columns smallint[]) returns void
language plpgsql as $drop_aliases_over$
begin
  perform {{swap}}.run_all(array(
    select format('alter table %s drop column %I', p_table::regclass, c.name)
    from {{swap}}.alias_columns(p_table, p_table_id) as c where c.attnum = any (p_columns)));
  perform {{swap}}.drop_alias_function(p_table, a.name)
  from {{swap}}._aliases as a join {{swap}}._tables as t on t.table_id = a.scope
    cross join jsonb_to_recordset(t.spec -> 'columns') as c ("fieldId" text, name text)
    join pg_attribute as o on o.attrelid = p_table and o.attname = c.name and o.attnum = any (p_columns)
  where a.scope = p_table_id and a.field_id = c."fieldId";
end $drop_aliases_over$;

-- make_alias_columns(): creates the missing aliases of columns of tables that this transaction has locked exclusively,
-- and describes those that there are.
-- One that cannot be created (an object of the customer's has its name, or the table has too many columns) is left out.
create or replace function {{swap}}.make_alias_columns() returns void language plpgsql as $make_alias_columns$
declare
  v_column "char";
  one record;
begin
  for one in
    select w.*, {{swap}}.live_table(w.table_name) as relation from {{swap}}.wanted_aliases() as w
    where w.field_id is not null
  loop
    select a.attgenerated into v_column from pg_attribute as a
    where a.attrelid = one.relation and a.attname = one.name and not a.attisdropped;
    continue when one.relation is null or v_column <> 'v' or not {{swap}}.is_locked(one.relation)
      or {{swap}}.alias_obstacle(one.relation, one.name) is not null;
    if {{swap}}.has_virtual_columns() then
      if v_column is null then
        perform {{swap}}.attempt(format('alter table {{schema}}.%I add column %I %s generated always as (%I) virtual',
          one.table_name, one.name, one.type, one.column_name));
      end if;
      perform {{swap}}.attempt(format('comment on column {{schema}}.%I.%I is %L', one.table_name, one.name,
        format('The old name of the column %s.', one.column_name)));
    elsif to_regprocedure(format('{{schema}}.%I({{schema}}.%I)', one.name, one.table_name))
      is not distinct from {{swap}}.own_alias_function(one.relation, one.name)
    then
      perform {{swap}}.attempt(format(
        'create or replace function {{schema}}.%1$I({{schema}}.%2$I) returns %3$s language sql immutable parallel safe as %4$L;
         comment on function {{schema}}.%1$I({{schema}}.%2$I) is %5$L', one.name, one.table_name, one.type,
        format('select $1.%I', one.column_name), format('The old name of the column %s.', one.column_name)));
    end if;
  end loop;
end $make_alias_columns$;

-- alias_definition(table_id): the query of the view with an old name of this table. It has the old names of its columns,
-- too.
create or replace function {{swap}}.alias_definition(p_table_id text) returns text language sql stable as $definition$
  select format('select t.id, t.created_time%s%s from {{schema}}.%I as t',
    (select string_agg(format(', t.%I', c.value ->> 'name'), '' order by c.nth)
      from jsonb_array_elements(t.spec -> 'columns') with ordinality as c (value, nth)),
    (select string_agg(format(', t.%I as %I', w.column_name, w.name), '' order by w.name)
      from {{swap}}.wanted_aliases() as w where w.scope = t.table_id), t.name)
  from {{swap}}._tables as t where t.table_id = p_table_id
$definition$;

-- stale_alias_views(): aliases of tables whose views are to be dropped, or created again with the current columns.
create or replace function {{swap}}.stale_alias_views() returns table (name text, view oid, is_wanted boolean)
language sql stable as $stale$
  select a.name, c.oid, w.name is not null
  from {{swap}}._aliases as a
    left join {{swap}}.wanted_aliases() as w on (w.scope, w.name) = (a.scope, a.name)
    left join pg_class as c on c.oid = a.view and c.relkind = 'v' and c.relowner = {{swap}}.our_role()
  where a.scope = '' and (w.name is null
    or a.view is not null and (c.oid is null or a.definition <> {{swap}}.alias_definition(a.table_id)))
$stale$;

-- drop_alias_views(): drops them, unless they were dropped with their table.
create or replace function {{swap}}.drop_alias_views() returns void language plpgsql as $drop_alias_views$
declare
  one record;
begin
  -- Those that were dropped by now are stale as well.
  for one in select * from {{swap}}.stale_alias_views() loop
    if one.view is not null then
      perform {{swap}}.drop_own(one.view);
    end if;
    if one.is_wanted then
      update {{swap}}._aliases as a set view = null, definition = null where a.scope = '' and a.name = one.name;
    else
      delete from {{swap}}._aliases as a where a.scope = '' and a.name = one.name;
    end if;
  end loop;
end $drop_alias_views$;

-- make_alias_views(): creates the missing ones, readable for those who may read the table. A name that an object of the
-- customer's has is left to it.
create or replace function {{swap}}.make_alias_views() returns void language plpgsql as $make_alias_views$
declare
  one record;
  reader record;
  v_definition text;
  v_view oid;
begin
  for one in
    select w.name, w.table_id, w.table_name from {{swap}}.wanted_aliases() as w
      join {{swap}}._aliases as a on (a.scope, a.name) = (w.scope, w.name)
    where w.scope = '' and a.view is null and {{swap}}.live_table(w.table_name) is not null
      and not exists (
        select from pg_class as c where c.relnamespace = '{{schema}}'::regnamespace and c.relname = w.name)
      and not exists (
        select from pg_type as y where y.typnamespace = '{{schema}}'::regnamespace and y.typname = w.name)
  loop
    v_definition := {{swap}}.alias_definition(one.table_id);
    begin
      -- The policies and grants of the table decide.
      execute format('create view {{swap}}.%I with (security_invoker = true) as %s', one.name, v_definition);
      v_view := format('{{swap}}.%I', one.name)::regclass;
      perform {{swap}}.show_relation(one.name);
      for reader in
        select distinct {{swap}}.role_name(g.grantee) as name from pg_class as c cross join aclexplode(c.relacl) as g
        where c.oid = {{swap}}.live_table(one.table_name) and g.grantee <> c.relowner and g.privilege_type = 'SELECT'
      loop
        execute format('grant select on {{schema}}.%I to %s', one.name, reader.name);
      end loop;
      execute format('comment on view {{schema}}.%I is %L', one.name,
        format('The old name of the table %s.', one.table_name));
      update {{swap}}._aliases as a set view = v_view, definition = v_definition
      where a.scope = '' and a.name = one.name;
    exception when others then
      if {{swap}}.is_transient(sqlstate) then
        raise;
      end if;
    end;
  end loop;
end $make_alias_views$;

-- expire_aliases(epoch): removes the aliases of columns whose time is over. Those of tables that others hold, or may lock
-- next, are left for the next time, and reported; returns whether there are any. apply_link_views removes those of tables.
create or replace function {{swap}}.expire_aliases(p_epoch bigint) returns boolean
language plpgsql set plan_cache_mode = force_generic_plan set lock_timeout = '2s' as $expire_aliases$
declare
  v_left boolean := false;
  one record;
begin
  perform {{swap}}.fence(p_epoch);
  delete from {{swap}}._sync_issues as i where i.record_id = '' and i.field = 'old names';
  delete from {{swap}}._aliases as a
  where a.scope <> '' and not exists (select from {{swap}}._tables as t where t.table_id = a.scope);
  for one in
    select distinct t.table_id, t.name from {{swap}}._aliases as a join {{swap}}._tables as t on t.table_id = a.scope
      cross join {{swap}}.live_table(t.name) as l (relation)
    where l.relation is not null and (
      not exists (select from {{swap}}.wanted_aliases() as w where (w.scope, w.name) = (a.scope, a.name))
      or {{swap}}.alias_obstacle(l.relation, a.name) is not null and {{swap}}.has_alias(l.relation, a.name))
  loop
    begin
      perform {{swap}}.lock_relations(array[one.name], {{swap}}.soon());
      perform {{swap}}.clear_aliases({{swap}}.relations_of(array[one.table_id]));
      perform {{swap}}.may_change('{}');
    exception when sqlstate 'BT007' or lock_not_available or deadlock_detected then
      v_left := true;
      perform {{swap}}.report_lost(one.name, 'old names', '',
        'old names of its columns still work, although their time is over: the table is locked by '
          || coalesce({{swap}}.holders_of({{swap}}.live_table(one.name)), 'other sessions'));
    end;
  end loop;
  return v_left;
end $expire_aliases$;

-- holders_of(table): the sessions that hold it, for people; null if there are none. More than three would not help the reader.
create or replace function {{swap}}.holders_of(p_table oid) returns text language sql stable as $holders_of$
  select string_agg(format('%s (%s)', h.role, concat_ws(', ', h.application, 'pid ' || h.pid,
    case when h.minutes > 0 then format('for %s min', h.minutes) end)), '; ' order by h.minutes desc nulls last, h.pid)
  from (
    select s.pid, coalesce(s.usename, s.backend_type) as role, nullif(s.application_name, '') as application,
      floor(extract(epoch from now() - s.xact_start) / 60)::integer as minutes
    from pg_stat_activity as s
    where s.pid in (select l.pid from pg_locks as l
      where l.locktype = 'relation' and l.granted and l.relation = p_table and l.pid <> pg_backend_pid()
        and l.database = (select d.oid from pg_database as d where d.datname = current_database()))
    order by minutes desc nulls last, s.pid limit 3) as h
$holders_of$;
