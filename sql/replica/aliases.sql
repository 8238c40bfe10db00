-- Old names that still answer: for some days after a rename, by the base's setting. Installed with install.sql.
--
-- An old table is a view with its old name. An old column is a virtual generated column on Postgres 18 and newer: no row
-- is written, and it follows its column. Before 18 it is a function of the table's row type, which answers `t.old`, but
-- not `old`. A table or a column that gets the name for itself takes it from the alias.
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
alter table {{swap}}._state add column if not exists alias_days integer not null default 0;

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
  where s.alias_days > 0
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

-- clear_aliases(relations): removes the aliases of columns of these tables that the catalog no longer wants, as far as
-- this transaction has locked the tables. One that a view of the customer's needs gets a name of ours, so that the old
-- name is free.
create or replace function {{swap}}.clear_aliases(p_relations jsonb) returns void language plpgsql as $clear_aliases$
declare
  one record;
begin
  for one in
    select a.scope, a.name, r.value::oid as relation
    from jsonb_each_text(p_relations) as r join {{swap}}._aliases as a on a.scope = r.key
    where r.value is not null and {{swap}}.is_locked(r.value::oid) and not exists (select from {{swap}}.wanted_aliases() as w where (w.scope, w.name) = (a.scope, a.name))
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
    delete from {{swap}}._aliases as a where (a.scope, a.name) = (one.scope, one.name);
  end loop;
end $clear_aliases$;

-- drop_alias_function(table, name): one that something needs stays, and hides nothing.
create or replace function {{swap}}.drop_alias_function(p_table oid, p_name text) returns void
language plpgsql as $drop_alias_function$
begin
  if exists (
    select from pg_proc as p join pg_class as c on c.oid = p_table and p.pronargs = 1 and p.proargtypes[0] = c.reltype
    where p.pronamespace = '{{schema}}'::regnamespace and p.proname = p_name and p.proowner = {{swap}}.our_role()
  ) then
    execute format('drop function {{schema}}.%I(%s)', p_name, p_table::regclass);
  end if;
exception when dependent_objects_still_exist then null;
end $drop_alias_function$;

-- drop_alias_functions(table, table_id): before the table is replaced.
create or replace function {{swap}}.drop_alias_functions(p_table oid, p_table_id text) returns void
language sql as $drop_alias_functions$
  select {{swap}}.drop_alias_function(p_table, a.name) from {{swap}}._aliases as a where a.scope = p_table_id
$drop_alias_functions$;

-- make_alias_columns(): creates the missing aliases of columns of tables that this transaction has locked exclusively,
-- and describes those that there are.
-- One that cannot be created (a column of the customer's has its name, or the table has too many columns) is left out.
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
    continue when one.relation is null or v_column <> 'v' or not {{swap}}.is_locked(one.relation);
    begin
      if {{swap}}.has_virtual_columns() then
        if v_column is null then
          execute format('alter table {{schema}}.%I add column %I %s generated always as (%I) virtual',
            one.table_name, one.name, one.type, one.column_name);
        end if;
        execute format('comment on column {{schema}}.%I.%I is %L', one.table_name, one.name,
          format('The old name of the column %s.', one.column_name));
      else
        execute format(
          'create or replace function {{schema}}.%I({{schema}}.%I) returns %s language sql immutable parallel safe as %L',
          one.name, one.table_name, one.type, format('select $1.%I', one.column_name));
        execute format('comment on function {{schema}}.%I({{schema}}.%I) is %L', one.name, one.table_name,
          format('The old name of the column %s.', one.column_name));
      end if;
    exception when others then
      if {{swap}}.is_transient(sqlstate) then
        raise;
      end if;
    end;
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

-- going_alias_views(): the views of those.
create or replace function {{swap}}.going_alias_views() returns oid[] language sql stable as $going$
  select array(select s.view from {{swap}}.stale_alias_views() as s where s.view is not null)
$going$;

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
-- next, are left for the next time. apply_link_views removes those of tables.
create or replace function {{swap}}.expire_aliases(p_epoch bigint) returns void
language plpgsql set plan_cache_mode = force_generic_plan as $expire_aliases$
declare
  v_timeout text := current_setting('lock_timeout');
  one record;
begin
  perform {{swap}}.fence(p_epoch);
  delete from {{swap}}._aliases as a
  where a.scope <> '' and not exists (select from {{swap}}._tables as t where t.table_id = a.scope);
  for one in
    select distinct t.table_id, t.name from {{swap}}._aliases as a join {{swap}}._tables as t on t.table_id = a.scope
    where not exists (select from {{swap}}.wanted_aliases() as w where (w.scope, w.name) = (a.scope, a.name))
      and {{swap}}.live_table(t.name) is not null
  loop
    begin
      perform {{swap}}.lock_relations(array[one.name], clock_timestamp() + interval '100 ms');
      perform {{swap}}.clear_aliases({{swap}}.relations_of(array[one.table_id]));
      perform {{swap}}.may_change('{}');
    exception when sqlstate 'BT007' or lock_not_available or deadlock_detected then null;
    end;
  end loop;
  perform set_config('lock_timeout', v_timeout, true);
end $expire_aliases$;

-- set_alias_days(days): from now on an old name answers for so long, and so do those that there are.
create or replace function {{swap}}.set_alias_days(p_days integer) returns void language plpgsql as $set_alias_days$
begin
  update {{swap}}._state as s set alias_days = p_days where s.alias_days <> p_days;
  if found then
    update {{swap}}._aliases as a set expires_at = a.made_at + make_interval(days => p_days);
  end if;
end $set_alias_days$;
