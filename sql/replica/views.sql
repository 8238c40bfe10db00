-- Preserves the customer's views over our tables. Installed with install.sql, and with its placeholders.
--
-- A column that a view needs cannot be dropped. So the views that depend on a column that gets another type, and the views
-- over those, are dropped and created again in the same transaction: with their owner, grants, options, comments, indexes
-- and triggers. A view that no longer fits (its column was dropped) does not stop
-- the change: it is stored in _orphaned_views and reported in _sync_issues, and is restored as soon as it fits.
--
-- A customer's text never runs with our rights. It is parsed only in remake.sql's sandbox, as the view's owner, and only
-- if it needs no code of theirs (foreign-code.sql). If we may not act as the owner, the view stays on the old column or table,
-- which is put aside.

create table if not exists {{swap}}._orphaned_views (
  schema text not null,
  name text not null,
  -- The result of save_view.
  saved jsonb not null,
  reason text not null,
  orphaned_at timestamptz not null default now(),
  constraint _orphaned_views_pkey primary key (schema, name)
);

-- Materialized views that were created again and must be filled, outside of the transaction of the change, which readers
-- wait for.
create table if not exists {{swap}}._views_to_refresh (
  schema text not null,
  name text not null,
  constraint _views_to_refresh_pkey primary key (schema, name)
);

-- Views that stay on a column or a table that was put aside: they show its values as they were.
create table if not exists {{swap}}._kept_views (
  view oid not null,
  schema text not null,
  name text not null,
  constraint _kept_views_pkey primary key (view)
);

-- wait_until(deadline): locks requested from now on are waited for until then. lock_timeout by itself starts again for
-- each lock, and a session that holds one lock and waits for the next keeps readers waiting all that time. A lock that
-- is free is granted even after the deadline: a busy server may take longer over many locks, and would the next time as
-- well.
create or replace function {{swap}}.wait_until(p_deadline timestamptz) returns void language plpgsql as $wait$
declare
  left_ms integer := greatest(1, ceil(extract(epoch from p_deadline - clock_timestamp()) * 1000));
begin
  perform set_config('lock_timeout', left_ms || 'ms', true);
end $wait$;

-- soon(): the end of a wait for all locks of a change together, and so the longest time that readers wait behind us.
create or replace function {{swap}}.soon() returns timestamptz language sql volatile as $soon$
  select clock_timestamp() + interval '100 ms'
$soon$;

-- dependent_views(tables, of, columns): views and materialized views over them, and over these columns of the table `of`,
-- and over those, with the number of levels.
create or replace function {{swap}}.dependent_views(p_tables oid[], p_of oid default null, p_columns smallint[] default '{}')
returns table (view oid, depth integer) language sql as $dependent$
  with recursive above (view, depth, is_partly) as (
    select t.oid, 0, false from unnest(p_tables) as t (oid)
    union all select p_of, 0, true where p_of is not null
    union
    select r.ev_class, above.depth + 1, false
    from above
      join pg_depend as d on d.refclassid = 'pg_class'::regclass and d.refobjid = above.view
        and (not above.is_partly or d.refobjsubid = any (p_columns))
      join pg_rewrite as r on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
      join pg_class as c on c.oid = r.ev_class and c.relkind in ('v', 'm')
    where r.ev_class <> above.view
  )
  select above.view, max(above.depth) from above where above.depth > 0 group by above.view
$dependent$;

-- save_view(view): everything needed to create it again.
create or replace function {{swap}}.save_view(p_view oid) returns jsonb language sql as $save$
  select jsonb_build_object(
    'oid', c.oid::bigint,
    'is_ours', c.relowner = {{swap}}.our_role() and (
      c.relnamespace = '{{schema}}'::regnamespace and (
        exists (select from {{swap}}._link_views as l where l.name = c.relname)
        or exists (select from {{swap}}._aliases as a where a.view = c.oid))
      or exists (select from {{swap}}._write_views as w where w.view = c.oid)),
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
      select pg_get_triggerdef(t.oid) from pg_trigger as t where t.tgrelid = c.oid and not t.tgisinternal
      union all
      select pg_get_ruledef(r.oid) from pg_rewrite as r where r.ev_class = c.oid and r.rulename <> '_RETURN'))
  from pg_class as c join pg_namespace as n on n.oid = c.relnamespace join pg_roles as o on o.oid = c.relowner
  where c.oid = p_view
$save$;

-- may_act_as(role): returns whether we have all rights of the role. Missing rights of the roles that we created, the
-- members of the reader of a database that we host, are granted.
create or replace function {{swap}}.may_act_as(p_role text) returns boolean language plpgsql as $may$
declare
  has_options boolean := current_setting('server_version_num')::integer >= 160000;
begin
  if {{swap}}.has_all_rights_of(p_role) then
    return true;
  elsif not exists (
    select from {{swap}}._state as s join pg_auth_members as m on m.roleid = to_regrole(quote_ident(s.reader))
    where s.reader <> current_user and m.member = to_regrole(quote_ident(p_role))
  ) then
    return false;
  end if;
  execute format('grant %I to %I %s', p_role, current_user,
    case when has_options then 'with inherit true, set true' else '' end);
  return {{swap}}.has_all_rights_of(p_role);
exception when insufficient_privilege or invalid_grant_operation then
  return false;
end $may$;

-- has_all_rights_of(role): returns whether we own its objects and may give it ours. A single right before version 16.
create or replace function {{swap}}.has_all_rights_of(p_role text) returns boolean language plpgsql as $has_all$
begin
  return pg_has_role(p_role, 'usage')
    and (current_setting('server_version_num')::integer < 160000 or pg_has_role(p_role, 'set'));
end $has_all$;

-- lock_views(tables, deadline, of, columns): locks the views over the tables, or over these columns of the table `of`,
-- exclusively, those first that nothing depends on, in the order in which readers lock them. Returns them for drop_views,
-- except those whose owners we may not act as.
create or replace function {{swap}}.lock_views(
  p_tables oid[], p_deadline timestamptz, p_of oid default null, p_columns smallint[] default '{}'
) returns jsonb[]
language plpgsql as $lock_views$
declare
  one record;
  saved jsonb[] := '{}';
begin
  -- The first build of a table takes the place of none.
  if p_tables = '{}' and p_of is null then
    return saved;
  end if;
  for one in
    select d.view, v.saved from {{swap}}.dependent_views(p_tables, p_of, p_columns) as d, {{swap}}.save_view(d.view) as v (saved)
    order by d.depth desc, d.view
  loop
    if not {{swap}}.may_act_as(one.saved ->> 'owner') then
      perform {{swap}}.keep_view(one.saved, format(
        '%2$I may not act as the role %1$I. To let Basetide create its views again: '
        'grant %1$I to %2$I', one.saved ->> 'owner', current_user));
      continue;
    end if;
    perform {{swap}}.wait_until(p_deadline);
    -- Changes nothing, but takes the lock. LOCK TABLE would require the view's owner to have rights to our tables.
    execute format('alter table %I.%I owner to %I',
      one.saved ->> 'schema', one.saved ->> 'name', one.saved ->> 'owner');
    -- Saved again: the customer may have replaced it before we had the lock.
    saved := saved || {{swap}}.save_view(one.view);
  end loop;
  return saved;
end $lock_views$;

-- lock_all(tables, names, of, columns): locks what a change touches: the views of lock_views, the link views that
-- change, and the tables of these names. Returns the views for drop_views, and the end of the time for all locks. The time
-- to find out what must be locked does not count: there may be a thousand views.
create or replace function {{swap}}.lock_all(
  p_tables oid[], p_names text[], p_of oid default null, p_columns smallint[] default '{}',
  out views jsonb[], out deadline timestamptz
) language plpgsql as $lock_all$
declare
  v_going oid[];
  v_changing oid[];
begin
  select array_agg(c.view) filter (where c.goes), array_agg(c.view) into v_going, v_changing
  from {{swap}}.changing_views() as c;
  deadline := {{swap}}.soon();
  views := {{swap}}.lock_views(p_tables || v_going, deadline, p_of, p_columns);
  perform {{swap}}.lock_link_views(v_changing, deadline);
  perform {{swap}}.lock_relations(p_names, deadline);
end $lock_all$;

-- keep_view(saved, reason): records that the view stays on its table or column, which will be put aside.
create or replace function {{swap}}.keep_view(p_saved jsonb, p_reason text) returns void language plpgsql as $keep$
begin
  insert into {{swap}}._kept_views values ((p_saved ->> 'oid')::oid, p_saved ->> 'schema', p_saved ->> 'name')
  on conflict do nothing;
  perform {{swap}}.report_view(p_saved,
    'the view shows what changed last as it was before, until the view is created again: ' || p_reason,
    format(e'drop %s %I.%I;\n', case p_saved ->> 'kind' when 'm' then 'materialized view' else 'view' end,
      p_saved ->> 'schema', p_saved ->> 'name'));
end $keep$;

-- report_view(saved, reason, before): reports it in _sync_issues, with the statements of `before` and those that create
-- it.
create or replace function {{swap}}.report_view(p_saved jsonb, p_reason text, p_before text default '') returns void
language sql as $report_view$
  select {{swap}}.report_lost(format('%I.%I', p_saved ->> 'schema', p_saved ->> 'name'), '',
    p_before || array_to_string({{swap}}.view_statements(p_saved, p_saved ->> 'definition'), e';\n') || ';', p_reason)
$report_view$;

-- drop_views(saved): drops locked views. They are created again with the current names of columns, which may have
-- changed since they were locked; people are shown the earlier definition. A view that something other than dropped
-- views needs stays on its table.
create or replace function {{swap}}.drop_views(p_saved jsonb[]) returns jsonb[] language plpgsql as $drop_views$
declare
  one jsonb;
  dropped jsonb[] := '{}';
begin
  foreach one in array p_saved loop
    if (one ->> 'is_ours')::boolean then
      perform {{swap}}.drop_write_view((one ->> 'oid')::oid);
      continue;
    end if;
    begin
      one := one || jsonb_build_object(
        'now', pg_get_viewdef((one ->> 'oid')::oid), 'foreign_code', {{swap}}.foreign_code((one ->> 'oid')::oid));
      execute format('drop %s %s',
        case one ->> 'kind' when 'm' then 'materialized view' else 'view' end, (one ->> 'oid')::oid::regclass);
      dropped := one || dropped;
    exception when dependent_objects_still_exist then
      perform {{swap}}.keep_view(one, sqlerrm);
    end;
  end loop;
  return dropped;
end $drop_views$;

-- make_views(dropped): creates dropped views again, except ours (link-views.sql). Failed ones become orphans.
create or replace function {{swap}}.make_views(p_dropped jsonb[]) returns void language plpgsql as $make_views$
declare
  one jsonb;
  v_batch jsonb[] := '{}';
begin
  foreach one in array p_dropped loop
    if one ->> 'foreign_code' is not null then
      perform {{swap}}.orphan_view(one, format(
        'Basetide does not create this view again because it uses %s, which Basetide did not create. '
        'Run the statements as %I', one ->> 'foreign_code', one ->> 'owner'));
      continue;
    end if;
    if v_batch[1] ->> 'owner' <> one ->> 'owner' then
      perform {{swap}}.make_batch(v_batch);
      v_batch := '{}';
    end if;
    v_batch := v_batch || one;
  end loop;
  perform {{swap}}.make_batch(v_batch);
end $make_views$;

-- make_batch(views): creates views of one owner.
create or replace function {{swap}}.make_batch(p_views jsonb[]) returns void language plpgsql as $make_batch$
declare
  v_errors text[];
begin
  if p_views = '{}' then
    return;
  end if;
  v_errors := {{swap}}.remake(p_views);
  for nth in 1 .. cardinality(p_views) loop
    if v_errors[nth] is not null then
      perform {{swap}}.orphan_view(p_views[nth], 'the view no longer fits its tables: ' || v_errors[nth]);
    end if;
  end loop;
end $make_batch$;

create or replace function {{swap}}.orphan_view(p_saved jsonb, p_reason text) returns void
language plpgsql as $orphan_view$
begin
  insert into {{swap}}._orphaned_views (schema, name, saved, reason)
  values (p_saved ->> 'schema', p_saved ->> 'name', p_saved - 'now', p_reason)
  on conflict (schema, name) do update
    set saved = excluded.saved, reason = excluded.reason, orphaned_at = excluded.orphaned_at;
  perform {{swap}}.report_view(p_saved, p_reason);
end $orphan_view$;

-- adopt_orphans(): creates the orphans that fit by now.
create or replace function {{swap}}.adopt_orphans() returns void language plpgsql as $adopt$
declare
  one record;
begin
  for one in
    select o.saved || jsonb_build_object('now', o.saved ->> 'definition') as saved from {{swap}}._orphaned_views as o
    where o.saved ->> 'foreign_code' is null and to_regclass(format('%I.%I', o.schema, o.name)) is null
      and to_regrole(quote_ident(o.saved ->> 'owner')) is not null
    order by o.orphaned_at, (o.saved ->> 'oid')::bigint
  loop
    if {{swap}}.may_act_as(one.saved ->> 'owner') then
      perform {{swap}}.remake(array[one.saved]);
    end if;
  end loop;
  perform {{swap}}.forget_views();
end $adopt$;

-- forget_views(): forgets orphans whose name has been taken, and kept views that no longer show an old table.
create or replace function {{swap}}.forget_views() returns void language plpgsql as $forget_views$
begin
  with found as (
    delete from {{swap}}._orphaned_views as o where to_regclass(format('%I.%I', o.schema, o.name)) is not null
    returning o.schema, o.name
  ), gone as (
    delete from {{swap}}._kept_views as k
    where k.view not in (select d.view from {{swap}}.dependent_views({{swap}}.kept_relations()) as d
      union all select d.view from (
        select c.relation, array_agg(c.attnum) as columns from {{swap}}.kept_columns() as c group by 1) as c
        cross join {{swap}}.dependent_views('{}', c.relation, c.columns) as d)
    returning k.schema, k.name
  )
  delete from {{swap}}._sync_issues as i
  using (table found union table gone) as f
  where i.table_name = format('%I.%I', f.schema, f.name) and i.record_id = '' and i.field = '';
end $forget_views$;

-- find_again(): the views whose OIDs are recorded: in a database that was restored from a dump, they have others.
create or replace function {{swap}}.find_again() returns void language sql as $find_again$
  update {{swap}}._aliases as a set view = {{swap}}.own_relation(a.name, 'v')
  where a.view is not null and not exists (select from pg_class as c where (c.oid, c.relname) = (a.view, a.name));
  update {{swap}}._write_views as v set view = (
    select c.oid from pg_class as c
    where c.relnamespace = to_regnamespace('{{write}}') and c.relname = v.name and c.relkind = 'v'
      and c.relowner = {{swap}}.our_role())
  where v.view is not null and not exists (select from pg_class as c where (c.oid, c.relname) = (v.view, v.name));
  update {{swap}}._kept_views as k set view = to_regclass(format('%I.%I', k.schema, k.name))
  where to_regclass(format('%I.%I', k.schema, k.name)) is not null
    and not exists (select from pg_class as c where (c.oid, c.relname) = (k.view, k.name))
$find_again$;

-- make_again(dropped): the end of a change: creates link views, the dropped views, and the orphans that fit by now.
create or replace function {{swap}}.make_again(p_dropped jsonb[]) returns void language plpgsql as $make_again$
begin
  perform {{swap}}.make_link_views();
  perform {{swap}}.make_views(p_dropped);
  perform {{swap}}.adopt_orphans();
end $make_again$;

-- view_refreshed(schema, name, error): records that a materialized view has been filled, or could not be (error).
create or replace function {{swap}}.view_refreshed(p_schema text, p_name text, p_error text) returns void
language plpgsql as $view_refreshed$
declare
  v_view text := format('%I.%I', p_schema, p_name);
begin
  if p_error is not null then
    -- Another session may have filled it meanwhile.
    if not exists (select from {{swap}}._views_to_refresh as r where (r.schema, r.name) = (p_schema, p_name)) then
      return;
    end if;
    perform {{swap}}.report_lost(v_view, '', format('refresh materialized view %s;', v_view),
      'the materialized view is empty since the last change of its table; Basetide refreshes it as soon as possible: '
        || p_error);
    return;
  end if;
  delete from {{swap}}._views_to_refresh as r where (r.schema, r.name) = (p_schema, p_name);
  delete from {{swap}}._sync_issues as i where (i.table_name, i.record_id, i.field) = (v_view, '', '')
    and starts_with(i.value, 'refresh ');
end $view_refreshed$;

-- drop_own(relation): drops a locked table or view of ours. If an object of the customer's needs it (a function, a
-- foreign key, a view that we may not touch), it is put aside unchanged instead.
create or replace function {{swap}}.drop_own(p_relation oid) returns void language plpgsql as $drop_own$
begin
  execute format('drop %s %s', (select case c.relkind when 'v' then 'view' else 'table' end from pg_class as c
    where c.oid = p_relation), p_relation::regclass);
exception when dependent_objects_still_exist then
  -- A view was created a moment ago: raise a lock error, and handle the view at the next try.
  if exists (
    select from {{swap}}.dependent_views(array[p_relation]) as d where d.view not in (
      select k.view from {{swap}}._kept_views as k union all select c.oid from pg_class as c
      where c.relnamespace = '{{swap}}'::regnamespace)
  ) then
    raise exception 'a view was created over %', p_relation::regclass using errcode = 'lock_not_available';
  end if;
  perform {{swap}}.put_aside(p_relation);
end $drop_own$;
