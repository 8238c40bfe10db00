-- Puts aside what others' objects need or are on: tables that the source no longer has, and views of ours. Installed with
-- install.sql.
--
-- A dropped table with objects of others moves to {{swap}} whole, and comes back whole if the source has the table again.
-- Until then one issue of _sync_issues lists the objects; whoever deletes that row gives them up. It is found by its value:
-- another table may get the name that the dropped one had, and lose it again.

create table if not exists {{swap}}._kept_tables (
  table_id text not null,
  -- In its name, too, which is the same after a restore of a dump.
  relation oid not null,
  -- The catalog's row at that time.
  live jsonb not null,
  -- The statements that put it in its publications again.
  publications text[] not null,
  constraint _kept_tables_pkey primary key (table_id)
);

-- dependents_of(relations): objects that need them, except views.
create or replace function {{swap}}.dependents_of(p_relations oid[]) returns table (
  classid oid, objid oid, objsubid integer, description text
) language sql as $dependents_of$
  with part as (select p.classid, p.objid from {{swap}}.parts_of(p_relations) as p)
  select distinct d.classid, d.objid, d.objsubid, pg_describe_object(d.classid, d.objid, d.objsubid)
  from part join pg_depend as d on (d.refclassid, d.refobjid) = (part.classid, part.objid)
  where d.deptype = 'n' and d.classid <> 'pg_rewrite'::regclass
    and (d.classid, d.objid) not in (select p.classid, p.objid from part as p)
$dependents_of$;

-- own_columns(table, spec): the columns that are not from the source, and not ours for a while.
create or replace function {{swap}}.own_columns(p_table oid, p_spec jsonb) returns setof name language sql as $own_columns$
  select a.attname from pg_attribute as a
  where a.attrelid = p_table and a.attnum > 0 and not a.attisdropped and a.attname not in ('id', 'created_time')
    and a.attname !~ '^_(filling|kept)_'
    and a.attname not in (select l.name from {{swap}}.alias_columns(p_table, p_spec ->> 'tableId') as l)
    and not exists (
      select from jsonb_array_elements(p_spec -> 'columns') as s (value) where s.value ->> 'name' = a.attname)
$own_columns$;

-- others_on(table, spec): what others have put on the table, or that needs it, for people.
create or replace function {{swap}}.others_on(p_table oid, p_spec jsonb) returns setof text language sql as $others_on$
  select 'column ' || o from {{swap}}.own_columns(p_table, p_spec) as o
  union
  select d.description from {{swap}}.dependents_of(array[p_table]) as d
  union
  select pg_describe_object(p.classid, p.objid, 0) from {{swap}}.parts_of(array[p_table]) as p
    left join pg_constraint as k on p.classid = 'pg_constraint'::regclass and k.oid = p.objid
    left join pg_class as i on p.classid = 'pg_class'::regclass and i.oid = p.objid and i.relkind = 'i'
    left join pg_attrdef as f on p.classid = 'pg_attrdef'::regclass and f.oid = p.objid
    left join pg_attribute as a on (a.attrelid, a.attnum) = (f.adrelid, f.adnum)
  where p.classid not in ('pg_type'::regclass, 'pg_trigger'::regclass)
    and (p.classid <> 'pg_class'::regclass or i.oid is not null)
    and coalesce(k.contype <> 'p' and not (k.contype = 'n' and exists (
      select from pg_attribute as c where c.attrelid = p_table and c.attnum = k.conkey[1] and c.attname in ('id', 'created_time'))), true)
    and (i.oid is null or i.relname not in (select x.name from {{swap}}._indexes as x)
      and not exists (select from pg_constraint as c where c.conindid = i.oid and c.conrelid = p_table))
    and coalesce(a.attgenerated = '', true)
  union
  select pg_describe_object('pg_trigger'::regclass, t.oid, 0) from pg_trigger as t where t.tgrelid = p_table and not t.tgisinternal
  union
  select 'view ' || d.view::regclass from {{swap}}.dependent_views(array[p_table]) as d
  union
  select 'inheritance from ' || i.inhparent::regclass from pg_inherits as i where i.inhrelid = p_table
  union
  select 'settings' from pg_class as c
  where c.oid = p_table and (array_remove(c.reloptions, 'toast_tuple_target=8160') <> '{}' or c.relreplident <> 'd' or c.relrowsecurity or exists (
    select from pg_attribute as a where a.attrelid = p_table and (a.attoptions is not null or coalesce(a.attstattarget, -1) >= 0)))
  union
  -- In a hosted database only we grant.
  select 'grants to ' || {{swap}}.role_name(g.grantee)
  from pg_class as c cross join {{swap}}._state as s cross join lateral (
    select x.grantee from aclexplode(c.relacl) as x
    union select x.grantee from pg_attribute as a cross join aclexplode(a.attacl) as x where a.attrelid = c.oid) as g
  where c.oid = p_table and s.reader = current_user and g.grantee <> c.relowner
$others_on$;

-- drop_table(live): drops the locked table; with objects of others it is put aside.
create or replace function {{swap}}.drop_table(p_live {{swap}}._tables) returns void language plpgsql as $drop_table$
declare
  v_table oid := {{swap}}.live_table(p_live.name);
  v_objects text := (select string_agg(o, ', ' order by o) from {{swap}}.others_on(v_table, p_live.spec) as o);
  v_publications text[] := '{}';
  one record;
begin
  perform {{swap}}.drop_alias_functions(v_table, p_live.table_id);
  if v_objects is null then
    perform {{swap}}.drop_own(v_table);
    return;
  end if;
  -- A build of the table has a key with this name.
  perform {{swap}}.run_all(array(
    select format('alter table %s rename constraint %I to %I', v_table::regclass, k.conname, {{swap}}.unused_name())
    from pg_constraint as k where k.conrelid = v_table and k.contype = 'p'));
  perform {{swap}}.move_relation(v_table, '{{swap}}', '_kept_' || v_table);
  -- A subscriber would look for the table under this name. The statements have it, too: others may get the earlier one.
  for one in
    select p.taken, p.made from {{swap}}.column_parts(v_table, '{}', true) as p where p.kind = 'publication'
  loop
    if {{swap}}.attempt(one.taken) is null then
      v_publications := v_publications || one.made;
    end if;
  end loop;
  if not exists (select from {{swap}}.own_columns(v_table, p_live.spec))
    and not exists (select from {{swap}}.dependents_of(array[v_table]))
    and not exists (select from {{swap}}.dependent_views(array[v_table]))
    and not exists (select from pg_trigger as t where t.tgrelid = v_table and t.tgtype & 32 <> 0)
  then
    execute format('truncate %s', v_table::regclass);
  end if;
  insert into {{swap}}._kept_tables values (p_live.table_id, v_table, to_jsonb(p_live), v_publications)
  on conflict on constraint _kept_tables_pkey do update
    set relation = excluded.relation, live = excluded.live, publications = excluded.publications;
  perform {{swap}}.report_lost(format('%I.%I', {{swap_text}}, '_kept_' || v_table), 'objects', {{swap}}.giving_up(v_table),
    format('the table %s no longer exists in Airtable. What is on it, or needs it, stays on this one, and comes back with it, until this row is deleted: %s',
      {{swap}}.shown_name(p_live.name), v_objects));
end $drop_table$;

-- giving_up(relation): the value of the issue of the table that was put aside.
create or replace function {{swap}}.giving_up(p_relation oid) returns text language sql as $giving_up$
  select format('drop table %I.%I;', {{swap_text}}, '_kept_' || p_relation)
$giving_up$;

-- take_back(table id, name): moves a table that was put aside back, under this name. Null if there is none.
create or replace function {{swap}}.take_back(p_table text, p_name text) returns {{swap}}._tables
language plpgsql as $take_back$
declare
  v_kept {{swap}}._kept_tables;
  v_live {{swap}}._tables;
  v_relation regclass;
begin
  delete from {{swap}}._kept_tables as k where k.table_id = p_table returning * into v_kept;
  v_relation := to_regclass(format('{{swap}}._kept_%s', v_kept.relation));
  if v_relation is null then
    return null;
  end if;
  v_live := jsonb_populate_record(null::{{swap}}._tables, v_kept.live);
  delete from {{swap}}._sync_issues as i
  where (i.record_id, i.field, i.value) = ('', 'objects', {{swap}}.giving_up(v_kept.relation));
  perform {{swap}}.run_publications(v_kept.publications, v_relation, p_name);
  perform {{swap}}.free_part_names(v_relation);
  perform {{swap}}.move_relation(v_relation, '{{schema}}', p_name);
  if to_regclass(format('{{schema}}.%I', '_' || p_table || '_pkey')) is null then
    perform {{swap}}.run_all(array(
      select format('alter table %s rename constraint %I to %I', v_relation, k.conname, '_' || p_table || '_pkey')
      from pg_constraint as k where k.conrelid = v_relation and k.contype = 'p'));
  end if;
  v_live.name := p_name;
  return v_live;
end $take_back$;

-- run_publications(statements, table, name): those that cannot be run are reported, with the name that the table gets.
create or replace function {{swap}}.run_publications(p_statements text[], p_table regclass, p_name text) returns void
language sql as $run_publications$
  select {{swap}}.report_lost(p_name, 'publication ' || split_part(r.statement, ' ', 3),
    replace(r.statement, p_table::text, {{swap}}.shown_name(p_name)), 'no longer on the table since its last change: ' || r.error)
  from (select s as statement, {{swap}}.attempt(s) as error from unnest(p_statements) as s) as r where r.error is not null
$run_publications$;

-- put_aside(view): moves a locked view of ours to {{swap}}, with everything that needs it, and reports that.
create or replace function {{swap}}.put_aside(p_view oid) returns void language plpgsql as $put_aside$
declare
  v_name text := (select c.relname from pg_class as c where c.oid = p_view);
begin
  perform {{swap}}.move_relation(p_view, '{{swap}}', '_kept_' || p_view);
  perform {{swap}}.report_lost(d.description, '', coalesce(
      (select pg_get_functiondef(p.oid) from pg_proc as p where d.classid = 'pg_proc'::regclass and p.oid = d.objid), ''),
    format('it still uses %s as it was before the last change: drop it and create it again', {{swap}}.shown_name(v_name)))
  from {{swap}}.dependents_of(array[p_view]) as d;
end $put_aside$;

-- kept_relations(): tables and views that were put aside.
create or replace function {{swap}}.kept_relations() returns oid[] language sql as $kept_relations$
  select array(
    select c.oid from pg_class as c
    where c.relnamespace = '{{swap}}'::regnamespace and c.relkind in ('r', 'v') and c.relname ~ '^_kept_[0-9]+$')
$kept_relations$;

-- drop_kept(): drops views that were put aside and that nothing needs any longer, and tables whose issue was deleted.
-- What cannot be dropped now is left for the next time: others hold it, or an event trigger refuses that.
create or replace function {{swap}}.drop_kept() returns void language plpgsql as $drop_kept$
declare
  one record;
begin
  for one in
    select c.relname, c.relkind, t.table_id from unnest({{swap}}.kept_relations()) as k (oid) join pg_class as c on c.oid = k.oid
      left join {{swap}}._kept_tables as t on c.relname = '_kept_' || t.relation
    where case when t.table_id is null then not exists (select from {{swap}}.dependents_of(array[c.oid]))
        and not exists (select from {{swap}}.dependent_views(array[c.oid]))
      else not exists (select from {{swap}}._sync_issues as i
        where (i.record_id, i.field, i.value) = ('', 'objects', {{swap}}.giving_up(t.relation))) end
  loop
    begin
      if one.relkind = 'r' then
        perform {{swap}}.lock_exclusively(format('{{swap}}.%I', one.relname), {{swap}}.soon());
      else
        perform {{swap}}.wait_until({{swap}}.soon());
      end if;
      execute format('drop %s {{swap}}.%I', case one.relkind when 'v' then 'view' else 'table' end, one.relname);
      delete from {{swap}}._kept_tables as t where t.table_id = one.table_id;
      perform {{swap}}.may_change('{}');
    exception when others then null;
    end;
  end loop;
  delete from {{swap}}._sync_issues as i
  where i.record_id = '' and i.field = '' and i.reason like 'it still uses %' and i.reason not like 'it still uses a column %'
    and i.table_name not in (select d.description from {{swap}}.dependents_of({{swap}}.kept_relations()) as d);
end $drop_kept$;

-- grant_reads(built): a new table may be read by the reader, and by the roles that the customer's default privileges name.
create or replace function {{swap}}.grant_reads(p_built regclass) returns void
language plpgsql as $grant_reads$
begin
  perform {{swap}}.reserve_for_reader(p_built);
  perform {{swap}}.run_all(array(
    select distinct format('grant select on %s to %s %s', p_built, {{swap}}.role_name(g.grantee),
      case when g.is_grantable then 'with grant option' else '' end)
    from pg_default_acl as d cross join aclexplode(d.defaclacl) as g
    where d.defaclrole = {{swap}}.our_role() and d.defaclnamespace in (0, '{{schema}}'::regnamespace)
      and d.defaclobjtype = 'r' and g.privilege_type = 'SELECT'));
end $grant_reads$;

-- own_comment(spec, column): the comment that we put on the table (column is null) or on this column of it, as
-- core/replica/ddl.ts writes it.
create or replace function {{swap}}.own_comment(p_spec jsonb, p_column text) returns text language sql as $own_comment$
  select case
    when p_column is null then concat_ws(e'\n\n', p_spec ->> 'sourceName', p_spec ->> 'tableId', p_spec ->> 'description')
    else (
      select concat_ws(e'\n\n', c."sourceName", format('%s, %s', c."fieldId", c."sourceType"), c.description)
      from jsonb_to_recordset(p_spec -> 'columns')
        as c (name text, "sourceName" text, "fieldId" text, "sourceType" text, description text)
      where c.name = p_column)
  end
$own_comment$;

-- others_comments(live tables): statements that restore the comments that are not ours.
create or replace function {{swap}}.others_comments(p_live {{swap}}._tables[]) returns text[] language sql as $others_comments$
  -- By id, because the statements run when the table and its columns have other names.
  select array(
    select format('select {{swap}}.comment_on(%s, %s, %L)', c.oid, d.objsubid, d.description)
    from unnest(p_live) as t
      join pg_class as c on c.relnamespace = '{{schema}}'::regnamespace and c.relname = t.name
      join pg_description as d on (d.classoid, d.objoid) = ('pg_class'::regclass, c.oid)
      left join pg_attribute as a on (a.attrelid, a.attnum) = (c.oid, d.objsubid)
    where d.description is distinct from {{swap}}.own_comment(t.spec, case when d.objsubid > 0 then a.attname end)
      and d.objsubid not in (select l.attnum from {{swap}}.alias_columns(c.oid, t.table_id) as l)
      and (d.objsubid = 0 or a.attname !~ '^_filling_'))
$others_comments$;

create or replace function {{swap}}.comment_on(p_table oid, p_column integer, p_comment text) returns void
language sql as $comment_on$
  select {{swap}}.run_all(array(
    select format('comment on table %s is %L', p_table::regclass, p_comment) where p_column = 0
    union all
    select format('comment on column %s.%I is %L', p_table::regclass, a.attname, p_comment)
    from pg_attribute as a where (a.attrelid, a.attnum) = (p_table, p_column) and not a.attisdropped))
$comment_on$;
