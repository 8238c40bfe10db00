-- Carries over to a rebuilt table what others have put on our tables: additions.sql lists it. Installed with
-- install.sql.
--
-- To Postgres a rebuilt table is a different one. What was put on the old table is put on the new one too, by the same
-- name; what cannot be carried over is reported in _sync_issues, with the statements that create it. What was on a
-- table that is dropped is stored until the source has the table again.
--
-- Only our own role, superusers and roles that they granted the right to can put anything on a table of ours.
-- Statements run with our rights; needs.sql says why that runs no code that did not run before.

-- From earlier versions.
drop function if exists {{swap}}.outside_needs(oid, oid, oid, oid);

-- Additions of dropped tables.
create table if not exists {{swap}}._orphaned_additions (
  table_id text not null,
  additions jsonb not null,
  -- The catalog's row at that time, and the table itself, which may have been put aside.
  live jsonb not null,
  relation oid,
  constraint _orphaned_additions_pkey primary key (table_id)
);

-- additions_for(live, table): the additions of a live table, for its replacement. The columns that they need must have
-- the same names there.
create or replace function {{swap}}.additions_for(p_live {{swap}}._tables, p_table jsonb) returns jsonb
language sql as $additions_for$
  with old as (
    select * from jsonb_to_recordset(p_live.spec -> 'columns') as c ("fieldId" text, name text, "columnType" text)
  ), new as (
    select * from jsonb_to_recordset(p_table #> '{spec,columns}') as c ("fieldId" text, name text, "columnType" text)
  ), one as (
    select format('{{schema}}.%I', p_live.name)::regclass as oid
  ), mine as (
    select a.attname as name from one cross join {{swap}}.own_columns(one.oid, p_live.spec) as a
  ), stays (name) as (
    select old.name from old join new using ("fieldId", name)
    union all select m.name from mine as m where m.name not in (select new.name from new)
    union all values ('id'), ('created_time')
  ), found as (
    select a.label, a.kind, a.name, a.stage, a.place, a.heads, a.tails, a.needs, a.probe, a.shown, p_live.name as "table",
      coalesce(a.obstacle,
        case when a.kind = 'column' and a.name in (select new.name from new)
          then 'Airtable now has a field with this name' end,
        (select format('its column %I was dropped or renamed', u.name)
          from unnest(a.columns) as u (name) where u.name not in (select s.name from stays as s) limit 1),
        case when a.kind like 'comment on %' and a.place = 95 and regexp_replace(a.name, '^"(.*)"$', '\1') not in (select s.name from stays as s)
          then 'its column was dropped or renamed' end) as obstacle
    from one cross join {{swap}}.additions(one.oid, p_live.spec) as a
    where a.kind not in ('storage', 'compression') or a.name in (
      select old.name from old join new using ("fieldId", name, "columnType") union all values ('id'), ('created_time'))
  )
  select coalesce(jsonb_agg(to_jsonb(f.*)), '[]') from found as f
$additions_for$;

-- shown_addition(addition, name): the statements that create it on the table of this name.
create or replace function {{swap}}.shown_addition(p_one jsonb, p_name text) returns text language sql as $shown_addition$
  select coalesce(p_one ->> 'shown', string_agg(
    rtrim(h.value || coalesce({{swap}}.shown_name(p_name) || (p_one -> 'tails' ->> (h.nth - 1)::integer), ''), '; '), e';\n' order by h.nth))
  from jsonb_array_elements_text(p_one -> 'heads') with ordinality as h (value, nth)
$shown_addition$;

-- carry_over(additions, stage, places, target, name): puts the additions of this stage and these places on `target`.
-- Those that cannot be created are reported under the table's name. If a policy is missing, the other policies are
-- dropped too, because they might show too much: all rows are then hidden.
create or replace function {{swap}}.carry_over(
  p_additions jsonb, p_stage text, p_places int4range, p_target text, p_name text
) returns void language plpgsql as $carry_over$
declare
  one jsonb;
  v_error text;
  v_kind text;
  is_policy_missing boolean := false;
begin
  for one in
    select a.value from jsonb_array_elements(p_additions) as a
    where a.value ->> 'stage' = p_stage and (a.value ->> 'place')::integer <@ p_places
    -- Policies that cannot be created come first.
    order by a.value ->> 'obstacle' is null, (a.value ->> 'place')::integer, a.value ->> 'label'
  loop
    v_kind := one ->> 'kind';
    v_error := coalesce(one ->> 'obstacle',
      case when is_policy_missing and v_kind = 'policy' then 'another policy of the table cannot be created again'
        when v_kind = 'rule' and one ->> 'table' <> p_name then 'its table was renamed' end);
    if v_error is null then
      begin
        perform {{swap}}.put_on(one, p_target);
      exception when others then
        if {{swap}}.is_transient(sqlstate) then
          raise;
        end if;
        v_error := sqlerrm;
      end;
    end if;
    if v_error is not null then
      perform {{swap}}.report_lost(p_name, one ->> 'label', {{swap}}.shown_addition(one, p_name),
        'no longer on the table since its rebuild: ' || v_error);
      is_policy_missing := is_policy_missing or v_kind = 'policy';
    end if;
  end loop;
  if is_policy_missing then
    perform {{swap}}.drop_policies(p_additions, p_target, p_name);
  end if;
end $carry_over$;

-- put_on(addition, target): creates it. Raises an error if that is impossible, or if the result would mean something
-- else.
create or replace function {{swap}}.put_on(p_one jsonb, p_target text) returns void language plpgsql as $put_on$
declare
  v_needs text[] := array(select jsonb_array_elements_text(p_one -> 'needs'));
begin
  perform {{swap}}.probe_expression(p_one ->> 'probe', p_target::regclass, v_needs);
  for nth in 0 .. jsonb_array_length(p_one -> 'heads') - 1 loop
    execute (p_one -> 'heads' ->> nth) || coalesce(p_target || (p_one -> 'tails' ->> nth), '');
  end loop;
  if {{swap}}.all_needs(p_target::regclass, p_one ->> 'kind', p_one ->> 'name') <> v_needs then
    raise exception 'it would use a different object than before' using errcode = 'BT004';
  end if;
end $put_on$;

-- drop_policies(additions, target, name): drops the policies that were created before one of them failed.
create or replace function {{swap}}.drop_policies(p_additions jsonb, p_target text, p_name text) returns void
language plpgsql as $drop_policies$
declare
  one record;
begin
  for one in
    select p.polname, a.value as addition
    from pg_policy as p join jsonb_array_elements(p_additions) as a on a.value ->> 'label' = 'policy ' || p.polname
    where p.polrelid = p_target::regclass
  loop
    execute format('drop policy %I on %s', one.polname, p_target);
    perform {{swap}}.report_lost(p_name, 'policy ' || one.polname, {{swap}}.shown_addition(one.addition, p_name),
      'no longer on the table since its rebuild: another policy of the table cannot be created again');
  end loop;
end $drop_policies$;

-- is_transient(state): locks, lost connections, full disks: the whole change is tried again later.
create or replace function {{swap}}.is_transient(p_state text) returns boolean language sql immutable as $is_passing$
  select left(p_state, 2) in ('40', '53', '57', '58') or p_state = '55P03'
$is_passing$;

-- report_lost(table, label, statement, reason): reports it in _sync_issues.
create or replace function {{swap}}.report_lost(p_name text, p_label text, p_statement text, p_reason text) returns void
language sql as $report_lost$
  insert into {{swap}}._sync_issues (table_name, record_id, field, value, reason)
  values (p_name, '', p_label, p_statement, p_reason)
  on conflict (table_name, record_id, field) do update
    set value = excluded.value, reason = excluded.reason, seen_at = excluded.seen_at
$report_lost$;

-- grant_reads(built, live name): roles that may read the live table may read its replacement (carry_over); a new table
-- may be read by the roles that the customer's default privileges name.
create or replace function {{swap}}.grant_reads(p_built regclass, p_live text) returns void
language plpgsql as $grant_reads$
declare
  one record;
begin
  perform {{swap}}.forbid_writes(p_built);
  for one in
    select distinct {{swap}}.role_name(g.grantee) as name
    from pg_class as c cross join aclexplode(c.relacl) as g
    where p_live is not null and c.oid = p_built and g.grantee <> c.relowner
  loop
    execute format('revoke all on %s from %s', p_built, one.name);
  end loop;
  for one in
    select {{swap}}.role_name(g.grantee) as name, g.is_grantable
    from pg_default_acl as d cross join aclexplode(d.defaclacl) as g
    where p_live is null and d.defaclrole = {{swap}}.our_role() and d.defaclnamespace = '{{schema}}'::regnamespace
      and d.defaclobjtype = 'r' and g.privilege_type = 'SELECT'
  loop
    execute format('grant select on %s to %s %s', p_built, one.name,
      case when one.is_grantable then 'with grant option' else '' end);
  end loop;
  execute format('grant select on %s to %I', p_built, (select s.reader from {{swap}}._state as s));
end $grant_reads$;

-- copy_values(from, spec, target): copies the values of the columns that are not the source's. From now on no other
-- session may change them: later changes would be lost.
create or replace function {{swap}}.copy_values(p_from oid, p_spec jsonb, p_target text) returns void
language plpgsql as $copy_values$
declare
  v_columns name[] := array(
    select c.attname from {{swap}}.own_columns(p_from, p_spec) as c
      join pg_attribute as t on t.attrelid = p_target::regclass and t.attname = c.attname and t.attnum > 0
    where c.attgenerated = '' and not t.attisdropped
      and not exists (select from jsonb_array_elements(p_spec -> 'columns') as s (value) where s.value ->> 'name' = c.attname));
begin
  if v_columns = '{}' then
    return;
  end if;
  execute format('lock table %s in share mode', p_from::regclass);
  execute format('update %s as t set (%s) = row(%s) from only %s as o where t.id = o.id and row(%s) is distinct from row(%s)',
    p_target, (select string_agg(quote_ident(c), ', ') from unnest(v_columns) as c),
    (select string_agg(format('o.%I', c), ', ') from unnest(v_columns) as c), p_from::regclass,
    (select string_agg(format('t.%I::text', c), ', ') from unnest(v_columns) as c),
    (select string_agg(format('o.%I::text', c), ', ') from unnest(v_columns) as c));
end $copy_values$;

-- prepare_build(additions, from, spec, target, name): puts the additions of the build stage on a table that is not live
-- yet. The planner has statistics of its own columns already and now gets those of the added ones.
create or replace function {{swap}}.prepare_build(p_additions jsonb, p_from oid, p_spec jsonb, p_target text, p_name text)
returns void language plpgsql as $prepare_build$
begin
  perform {{swap}}.carry_over(p_additions, 'build', '[0,20)', p_target, p_name);
  if p_from is not null then
    perform {{swap}}.copy_values(p_from, p_spec, p_target);
  end if;
  perform {{swap}}.carry_over(p_additions, 'build', '[20,)', p_target, p_name);
  if exists (
    select from jsonb_array_elements(p_additions) as a
    where a.value ->> 'kind' in ('column', 'column options', 'statistics') or a.value ->> 'kind' = 'index' and a.value ->> 'probe' is not null
  ) then
    execute format('analyze %s', p_target);
  end if;
end $prepare_build$;

-- settle_statistics(additions, target, name): moves statistics that were created in {{swap}} to their original schema.
create or replace function {{swap}}.settle_statistics(p_additions jsonb, p_target text, p_name text) returns void
language plpgsql as $settle_statistics$
declare
  one record;
begin
  for one in
    select s.stxname as name, a.value as addition,
      parse_ident(substring(a.value ->> 'shown' from '^CREATE STATISTICS ((?:"(?:[^"]|"")*"|[^".])+)\.')) as home
    from pg_statistic_ext as s join jsonb_array_elements(p_additions) as a
      on a.value ->> 'kind' = 'statistics' and a.value ->> 'name' = s.stxname
    where s.stxrelid = p_target::regclass and s.stxnamespace = '{{swap}}'::regnamespace
  loop
    begin
      execute format('alter statistics {{swap}}.%I set schema %I', one.name, one.home[1]);
    exception when others then
      if {{swap}}.is_transient(sqlstate) then
        raise;
      end if;
      execute format('drop statistics {{swap}}.%I', one.name);
      perform {{swap}}.report_lost(p_name, 'statistics ' || one.name, one.addition ->> 'shown',
        'no longer on the table since its rebuild: ' || sqlerrm);
    end;
  end loop;
end $settle_statistics$;

-- keep_values(old, live, additions, name): returns whether the old table has values in a column that cannot be carried
-- over. It is then put aside until the issue that reports the column is deleted.
create or replace function {{swap}}.keep_values(p_old oid, p_live {{swap}}._tables, p_additions jsonb, p_name text) returns boolean
language plpgsql as $keep_values$
declare
  v_has_values boolean;
  v_columns text := (
    select string_agg(format('count(o.%I)', c.attname), ' + ')
    from {{swap}}.own_columns(p_old, p_live.spec) as c
      join {{swap}}._sync_issues as i on i.table_name = p_name and i.record_id = '' and i.field = 'column ' || c.attname
    where c.attgenerated = '');
begin
  if v_columns is null then
    return false;
  end if;
  execute format('select %s > 0 from only %s as o', v_columns, p_old::regclass) into v_has_values;
  if v_has_values then
    insert into {{swap}}._kept_values values (p_old, p_name) on conflict (relation) do nothing;
    update {{swap}}._sync_issues as i
    set reason = i.reason || format('. Its values are in %I._kept_%s until this row is deleted', {{swap_text}}, p_old)
    from {{swap}}.own_columns(p_old, p_live.spec) as c
    where i.table_name = p_name and i.record_id = '' and i.field = 'column ' || c.attname and c.attgenerated = '';
  end if;
  return v_has_values;
end $keep_values$;

-- orphans_of(table ids): tables that will be dropped, each with its catalog row and its additions.
create or replace function {{swap}}.orphans_of(p_ids text[]) returns jsonb language sql as $orphans_of$
  select coalesce(jsonb_agg(jsonb_build_object('live', to_jsonb(t.*), 'additions',
    {{swap}}.additions_for(t, jsonb_build_object('spec', t.spec)))), '[]')
  from {{swap}}._tables as t where t.table_id = any (p_ids) and {{swap}}.live_table(t.name) is not null
$orphans_of$;

-- drop_tables(orphans): drops them, and stores their additions in case the source has the tables again.
create or replace function {{swap}}.drop_tables(p_orphans jsonb) returns void language plpgsql as $drop_tables$
declare
  one jsonb;
  v_live {{swap}}._tables;
  v_old oid;
  v_additions jsonb;
begin
  for one in select o.value from jsonb_array_elements(p_orphans) as o loop
    v_live := jsonb_populate_record(null::{{swap}}._tables, one -> 'live');
    v_old := format('{{schema}}.%I', v_live.name)::regclass;
    -- The reader's SELECT right and the indexes of the base's setting are ours to create.
    v_additions := (
      select jsonb_agg(a.value) from jsonb_array_elements(one -> 'additions') as a
      where a.value ->> 'label' <> 'grant select to ' || (select quote_ident(s.reader) from {{swap}}._state as s)
        and not (a.value ->> 'kind' = 'index' and a.value ->> 'name' in (select i.name from {{swap}}._indexes as i)));
    perform {{swap}}.report_lost(v_live.name, a.value ->> 'label', {{swap}}.shown_addition(a.value, v_live.name),
      'its table no longer exists in Airtable; it is restored if the table comes back')
    from jsonb_array_elements(v_additions) as a;
    perform {{swap}}.free_sequences(v_old);
    if {{swap}}.keep_values(v_old, v_live, v_additions, v_live.name) then
      perform {{swap}}.put_aside(v_old, v_live.table_id);
    else
      perform {{swap}}.drop_own(v_old, v_live.table_id);
    end if;
    perform {{swap}}.strip_kept(v_old) where v_old = any ({{swap}}.kept_relations());
    insert into {{swap}}._orphaned_additions (table_id, additions, live, relation)
    select v_live.table_id, coalesce(v_additions, '[]'), one -> 'live', v_old
    on conflict (table_id) do update
      set additions = excluded.additions, live = excluded.live, relation = excluded.relation;
  end loop;
end $drop_tables$;

-- adopt_additions(table, built): puts the stored additions of a dropped table that comes back on the new one. Returns
-- those of the live stage.
create or replace function {{swap}}.adopt_additions(p_table jsonb, p_built text) returns jsonb
language plpgsql as $adopt_additions$
declare
  v_orphan {{swap}}._orphaned_additions;
  v_name text := p_table ->> 'name';
  v_columns text[] := array['id', 'created_time'] || array(select c.value ->> 'name' from jsonb_array_elements(p_table #> '{spec,columns}') as c);
begin
  select * into v_orphan from {{swap}}._orphaned_additions as o where o.table_id = p_table ->> 'table_id';
  delete from {{swap}}._orphaned_additions as o where o.table_id = v_orphan.table_id;
  delete from {{swap}}._sync_issues as i using jsonb_array_elements(v_orphan.additions) as a
  where (i.table_name, i.record_id, i.field) = (v_orphan.live ->> 'name', '', a.value ->> 'label');
  perform {{swap}}.prepare_build(coalesce(v_orphan.additions, '[]'),
    (select c.oid from pg_class as c where c.oid = v_orphan.relation and c.oid = any ({{swap}}.kept_relations())),
    v_orphan.live -> 'spec', format('{{swap}}.%I', p_built), v_name);
  return coalesce(v_orphan.additions, '[]');
end $adopt_additions$;

-- others_comments(table ids): statements that restore the comments that are not ours.
create or replace function {{swap}}.others_comments(p_ids text[]) returns text[] language sql as $others_comments$
  -- By id, because the statements run when the table and its columns have other names.
  select array(
    select format('select {{swap}}.comment_on(%s, %s, %L)', c.oid, d.objsubid, d.description)
    from {{swap}}._tables as t
      join pg_class as c on c.relnamespace = '{{schema}}'::regnamespace and c.relname = t.name
      join pg_description as d on (d.classoid, d.objoid) = ('pg_class'::regclass, c.oid)
      left join pg_attribute as a on (a.attrelid, a.attnum) = (c.oid, d.objsubid)
    where t.table_id = any (p_ids) and t.spec ->> 'commentForm' = '2'
      and d.description is distinct from {{swap}}.own_comment(t.spec, case when d.objsubid > 0 then a.attname end)
      and d.objsubid not in (select l.attnum from {{swap}}.alias_columns(c.oid, t.table_id) as l))
$others_comments$;

create or replace function {{swap}}.comment_on(p_table oid, p_column integer, p_comment text) returns void
language plpgsql as $comment_on$
begin
  execute case p_column when 0 then format('comment on table %s is %L', p_table::regclass, p_comment)
    else (
      select format('comment on column %s.%I is %L', p_table::regclass, a.attname, p_comment)
      from pg_attribute as a where (a.attrelid, a.attnum) = (p_table, p_column)) end;
end $comment_on$;

-- forget_carried(): deletes issues whose cause is gone: the lost object is on the table again, or kept objects no
-- longer need an old table. Drops old tables that nothing needs. Runs once per lease, not at each change of shape,
-- because readers wait for that.
create or replace function {{swap}}.forget_carried() returns void language plpgsql as $forget_carried$
declare
  v_timeout text := current_setting('lock_timeout');
begin
  delete from {{swap}}._sync_issues as i using {{swap}}._tables as t
  where i.record_id = '' and i.field <> '' and i.table_name = t.name and i.field in (
    select a.label from {{swap}}.additions(to_regclass(format('{{schema}}.%I', t.name))) as a);
  delete from {{swap}}._sync_issues as i
  where i.record_id = '' and i.field = '' and starts_with(i.value, 'alter table') and strpos(i.value, ' validate constraint ') > 0 and not exists (
    select from pg_constraint as k
    where not k.convalidated and i.table_name = pg_describe_object('pg_constraint'::regclass, k.oid, 0));
  perform {{swap}}.move_dependents(t.table_id, t.name, null)
  from {{swap}}._tables as t where t.table_id in (select k.table_id from {{swap}}._kept_dependents as k);
  perform {{swap}}.drop_kept();
  perform set_config('lock_timeout', v_timeout, true);
end $forget_carried$;
