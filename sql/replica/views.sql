-- Views of the customer over our tables. Installed with install.sql, and with its placeholders.
--
-- A table that is rebuilt is another one to Postgres, and one that a view needs cannot be dropped. So the views that
-- depend on it, and those that depend on them, are taken away and made again around it, in the same transaction: with
-- their owner, grants, options, comments, indexes and triggers. A view that does not fit any more (its column is gone)
-- stops nothing: it is kept in _orphaned_views and told of in _sync_issues, and comes back as soon as it fits.

create table if not exists {{swap}}._orphaned_views (
  schema text not null,
  name text not null,
  -- What save_view made of it.
  saved jsonb not null,
  reason text not null,
  orphaned_at timestamptz not null default now(),
  constraint _orphaned_views_pkey primary key (schema, name)
);

-- Materialized views that were made again and are to be filled: not in the transaction of a swap, which readers wait
-- for.
create table if not exists {{swap}}._views_to_refresh (
  schema text not null,
  name text not null,
  constraint _views_to_refresh_pkey primary key (schema, name)
);

-- wait_until(deadline): locks asked for from now on are waited for until then. lock_timeout by itself counts for each
-- lock anew, and whoever holds one and waits for the next keeps readers waiting for all of that time. What nobody holds
-- is had after it, too: a busy server may take longer over many locks, and would as long again next time.
create or replace function {{swap}}.wait_until(p_deadline timestamptz) returns void language plpgsql as $wait$
declare
  left_ms integer := greatest(1, ceil(extract(epoch from p_deadline - clock_timestamp()) * 1000));
begin
  perform set_config('lock_timeout', left_ms || 'ms', true);
end $wait$;

-- dependent_views(tables): views and materialized views over them, and over those, with the number of steps up.
create or replace function {{swap}}.dependent_views(p_tables oid[]) returns table (view oid, depth integer)
language sql as $dependent$
  with recursive above (view, depth) as (
    select unnest(p_tables), 0
    union
    select r.ev_class, above.depth + 1
    from above
      join pg_depend as d on d.refclassid = 'pg_class'::regclass and d.refobjid = above.view
      join pg_rewrite as r on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
      join pg_class as c on c.oid = r.ev_class and c.relkind in ('v', 'm')
    where r.ev_class <> above.view
  )
  select above.view, max(above.depth) from above where above.depth > 0 group by above.view
$dependent$;

-- save_view(view): all that it takes to make it again.
create or replace function {{swap}}.save_view(p_view oid) returns jsonb language sql as $save$
  select jsonb_build_object(
    'oid', c.oid::bigint,
    'is_ours', c.relnamespace = '{{schema}}'::regnamespace
      and exists (select from {{swap}}._link_views as l where l.name = c.relname),
    'schema', n.nspname, 'name', c.relname, 'kind', c.relkind, 'owner', o.rolname,
    'definition', pg_get_viewdef(c.oid), 'options', coalesce(array_to_string(c.reloptions, ', '), ''),
    'comment', obj_description(c.oid, 'pg_class'),
    'grants', (
      select coalesce(jsonb_agg(jsonb_build_object(
        'to', case when a.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end,
        'privilege', a.privilege_type, 'grantable', a.is_grantable)), '[]')
      from aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) as a),
    'column_comments', (
      select coalesce(jsonb_object_agg(a.attname, col_description(c.oid, a.attnum)), '{}')
      from pg_attribute as a where a.attrelid = c.oid and col_description(c.oid, a.attnum) is not null),
    'statements', array(
      select pg_get_indexdef(i.indexrelid) from pg_index as i where i.indrelid = c.oid
      union all
      select pg_get_triggerdef(t.oid) from pg_trigger as t where t.tgrelid = c.oid and not t.tgisinternal))
  from pg_class as c join pg_namespace as n on n.oid = c.relnamespace join pg_roles as o on o.oid = c.relowner
  where c.oid = p_view
$save$;

-- lock_views(tables, deadline): keeps everybody out of the views over the tables, those first that nothing depends on,
-- as readers lock them. Answers what they are, for drop_views.
create or replace function {{swap}}.lock_views(p_tables oid[], p_deadline timestamptz) returns jsonb[]
language plpgsql as $lock_views$
declare
  one record;
  saved jsonb[] := '{}';
begin
  for one in
    select d.view, v.saved from {{swap}}.dependent_views(p_tables) as d, {{swap}}.save_view(d.view) as v (saved)
    order by d.depth desc, d.view
  loop
    perform {{swap}}.wait_until(p_deadline);
    -- Changes nothing, and takes the lock. LOCK TABLE would ask the view's owner for rights to our tables.
    execute format('alter table %I.%I owner to %I',
      one.saved ->> 'schema', one.saved ->> 'name', one.saved ->> 'owner');
    saved := saved || one.saved;
  end loop;
  return saved;
end $lock_views$;

-- drop_views(saved): drops locked views. They are made again with the names that columns have now, which may have
-- changed since they were locked; people are shown the definition of before.
create or replace function {{swap}}.drop_views(p_saved jsonb[]) returns jsonb[] language plpgsql as $drop_views$
declare
  one jsonb;
  dropped jsonb[] := '{}';
begin
  foreach one in array p_saved loop
    dropped := one || jsonb_build_object('now', pg_get_viewdef((one ->> 'oid')::oid)) || dropped;
    -- By what it is called now: ours may have got another name.
    execute format('drop %s %s',
      case one ->> 'kind' when 'm' then 'materialized view' else 'view' end, (one ->> 'oid')::oid::regclass);
  end loop;
  return dropped;
end $drop_views$;

-- make_view(saved, definition): makes the view as it was; errs if it does not fit.
create or replace function {{swap}}.make_view(p_saved jsonb, p_definition text) returns void
language plpgsql as $make$
declare
  v_name text := format('%I.%I', p_saved ->> 'schema', p_saved ->> 'name');
  v_kind text := case p_saved ->> 'kind' when 'm' then 'materialized view' else 'view' end;
  v_options text := case when p_saved ->> 'options' = '' then '' else format('with (%s)', p_saved ->> 'options') end;
  v_end text := case p_saved ->> 'kind' when 'm' then 'with no data' else '' end;
  one record;
begin
  execute format('create %s %s %s as %s %s', v_kind, v_name, v_options, rtrim(p_definition, '; '), v_end);
  -- Before anything else: what is its owner's must not run with our rights.
  execute format('alter %s %s owner to %I', v_kind, v_name, p_saved ->> 'owner');
  execute format('comment on %s %s is %L', v_kind, v_name, p_saved ->> 'comment');
  for one in select * from jsonb_each_text(p_saved -> 'column_comments') loop
    execute format('comment on column %s.%I is %L', v_name, one.key, one.value);
  end loop;
  for one in
    select distinct case when a.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end as grantee
    from pg_class as c, aclexplode(c.relacl) as a where c.oid = v_name::regclass
  loop
    execute format('revoke all on %s from %s', v_name, one.grantee);
  end loop;
  for one in
    select * from jsonb_to_recordset(p_saved -> 'grants') as g ("to" text, privilege text, grantable boolean)
  loop
    execute format('grant %s on %s to %s %s', one.privilege, v_name, one."to",
      case when one.grantable then 'with grant option' else '' end);
  end loop;
  for one in select value as statement from jsonb_array_elements_text(p_saved -> 'statements') loop
    execute one.statement;
  end loop;
  if p_saved ->> 'kind' = 'm' then
    insert into {{swap}}._views_to_refresh values (p_saved ->> 'schema', p_saved ->> 'name') on conflict do nothing;
  end if;
end $make$;

-- make_views(dropped): makes dropped views again, but for ours (link-views.sql). Those that do not fit are kept as
-- orphans.
create or replace function {{swap}}.make_views(p_dropped jsonb[]) returns void language plpgsql as $make_views$
declare
  one jsonb;
begin
  foreach one in array p_dropped loop
    continue when (one ->> 'is_ours')::boolean;
    begin
      perform {{swap}}.make_view(one, one ->> 'now');
    exception when others then
      if left(sqlstate, 2) not in ('0A', '22', '2B', '42') then
        raise;
      end if;
      insert into {{swap}}._orphaned_views (schema, name, saved, reason)
      values (one ->> 'schema', one ->> 'name', one - 'now', sqlerrm)
      on conflict (schema, name) do update
        set saved = excluded.saved, reason = excluded.reason, orphaned_at = excluded.orphaned_at;
      insert into {{schema}}._sync_issues (table_name, record_id, field, value, reason)
      values (format('%I.%I', one ->> 'schema', one ->> 'name'), '', '', one ->> 'definition',
        'view does not fit any more: ' || sqlerrm)
      on conflict (table_name, record_id, field) do update
        set value = excluded.value, reason = excluded.reason, seen_at = excluded.seen_at;
    end;
  end loop;
end $make_views$;

-- adopt_orphans(): makes the orphans again that fit by now, and forgets those whose name somebody has taken.
create or replace function {{swap}}.adopt_orphans() returns void language plpgsql as $adopt$
declare
  one record;
begin
  for one in select * from {{swap}}._orphaned_views order by orphaned_at, (saved ->> 'oid')::bigint loop
    begin
      if to_regclass(format('%I.%I', one.schema, one.name)) is null then
        perform {{swap}}.make_view(one.saved, one.saved ->> 'definition');
      end if;
      delete from {{swap}}._orphaned_views as o where (o.schema, o.name) = (one.schema, one.name);
      delete from {{schema}}._sync_issues as i
      where i.table_name = format('%I.%I', one.schema, one.name) and i.record_id = '' and i.field = '';
    exception when others then
      if left(sqlstate, 2) not in ('0A', '22', '2B', '42') then
        raise;
      end if;
    end;
  end loop;
end $adopt$;

-- drop_table(name): drops a table of ours that is locked and has no views. Where something else of the customer's
-- needs it (a function, a foreign key), it is put aside instead, as it is.
create or replace function {{swap}}.drop_table(p_name text) returns void language plpgsql as $drop$
declare
  v_table oid := format('{{schema}}.%I', p_name)::regclass;
  one record;
begin
  execute format('drop table {{schema}}.%I', p_name);
exception when dependent_objects_still_exist then
  -- A view that was made a moment ago: its like are seen to when we come again.
  if exists (select from {{swap}}.dependent_views(array[v_table])) then
    raise exception 'a view was made over %', p_name using errcode = 'lock_not_available';
  end if;
  for one in select c.conname from pg_constraint as c where c.conrelid = v_table and c.contype = 'p' loop
    execute format('alter table {{schema}}.%I rename constraint %I to %I', p_name, one.conname,
      '_kept_' || v_table || '_pkey');
  end loop;
  execute format('alter table {{schema}}.%I rename to %I', p_name, '_kept_' || v_table);
  execute format('alter table {{schema}}.%I set schema {{swap}}', '_kept_' || v_table);
end $drop$;
