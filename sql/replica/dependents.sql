-- Handles others' objects that need our tables: foreign keys, functions, inheritance children. Installed with
-- install.sql.
--
-- Such an object keeps a table from being dropped. When its table is rebuilt, the old one is put aside with everything
-- that needs it, each object is moved to the new table if we may (as its owner, or with the rights of its owner), and
-- the old one is dropped once nothing needs it. Objects that cannot be moved are reported in _sync_issues, with the
-- statements for their owner. Views: views.sql.

-- Objects that stay on a table that was put aside, as Postgres describes them.
create table if not exists {{swap}}._kept_dependents (
  description text not null,
  constraint _kept_dependents_pkey primary key (description)
);
-- Exist since dependents are moved; null in rows of an earlier version.
alter table {{swap}}._kept_dependents add column if not exists table_id text, add column if not exists saved jsonb;

-- Tables that were put aside because of values in columns that are not the source's. They stay while _sync_issues has
-- such a column of the table of this name.
create table if not exists {{swap}}._kept_values (
  relation oid not null,
  name text not null,
  constraint _kept_values_pkey primary key (relation)
);

-- Foreign keys that were validated, and must be again: core/replica/references.ts.
create table if not exists {{swap}}._references_to_check (
  relation oid not null,
  name name not null,
  constraint _references_to_check_pkey primary key (relation, name)
);

-- From earlier versions.
drop function if exists {{swap}}.take_references(oid, timestamptz);
drop function if exists {{swap}}.give_references(jsonb, text);
drop function if exists {{swap}}.report_kept(oid, text);

-- run(statement).
create or replace function {{swap}}.run(p_statement text) returns void language plpgsql as $run$
begin
  execute p_statement;
end $run$;

-- kept_relations(): tables and views that were put aside.
create or replace function {{swap}}.kept_relations() returns oid[] language sql as $kept_relations$
  select array(
    select c.oid from pg_class as c
    where c.relnamespace = '{{swap}}'::regnamespace and c.relkind in ('r', 'v') and starts_with(c.relname, '_kept_')
      and c.relname ~ '^_kept_[0-9]+$')
$kept_relations$;

-- dependents_of(relations): objects that need them, except views, which have issues of their own.
create or replace function {{swap}}.dependents_of(p_relations oid[]) returns table (
  classid oid, objid oid, objsubid integer, description text
) language sql as $dependents_of$
  with part as (select p.classid, p.objid from {{swap}}.parts_of(p_relations) as p)
  select distinct d.classid, d.objid, d.objsubid, pg_describe_object(d.classid, d.objid, d.objsubid)
  from part join pg_depend as d on (d.refclassid, d.refobjid) = (part.classid, part.objid)
  where d.deptype = 'n' and d.classid <> 'pg_rewrite'::regclass
    and (d.classid, d.objid) not in (select p.classid, p.objid from part as p)
$dependents_of$;

-- saved_dependents(table): for each dependent, the data needed to move it to another table. `head`, the table's name
-- and `tail` are the statement that creates it there; `shown` has the statements for its owner. kind: reference, child,
-- replace or remake (functions); other is not moved. {old} stands for the table's name after it has been put aside.
create or replace function {{swap}}.saved_dependents(p_table oid) returns jsonb[] language sql as $saved_dependents$
  with needing as (select * from {{swap}}.dependents_of(array[p_table])), found as (
    select n.classid, n.objid, n.description, 'reference' as kind, c.relowner as owner, c.oid as relation, k.conname::text as name,
      format('alter table %s add constraint %I %s', c.oid::regclass, k.conname, split_part(d.text, d.cut, 1) || ' REFERENCES ') as head,
      regexp_replace(substr(d.text, strpos(d.text, d.cut) + length(d.cut)), ' NOT VALID$', '') as tail,
      k.convalidated as is_checked, null::text as definition, null::text as identity,
      format(e'alter table %1$s drop constraint %2$I;\nalter table %1$s add constraint %2$I %3$s', c.oid::regclass, k.conname, d.text) as shown,
      c.relkind = 'r' and k.conparentid = 0 and strpos(d.text, d.cut) > 0 as is_known
    from needing as n join pg_constraint as k on n.classid = 'pg_constraint'::regclass and k.oid = n.objid and k.contype = 'f'
      join pg_class as c on c.oid = k.conrelid
      cross join lateral (select pg_get_constraintdef(k.oid), format(' REFERENCES %s', p_table::regclass)) as d (text, cut)
    union all
    select n.classid, n.objid, n.description, 'child', c.relowner, c.oid, null, format('alter table %s inherit ', c.oid::regclass), '',
      null, null, null,
      format(e'alter table %1$s no inherit {old};\nalter table %1$s inherit %2$s', c.oid::regclass, p_table::regclass), not c.relispartition
    from needing as n join pg_inherits as h on n.classid = 'pg_class'::regclass and h.inhrelid = n.objid and h.inhparent = p_table
      join pg_class as c on c.oid = n.objid
    where n.objsubid = 0
    union all
    select n.classid, n.objid, n.description,
      case when s.is_signature then 'remake' else 'replace' end, p.proowner, null, null, null, null, null, s.definition,
      format('%I.%I(%s)', (select m.nspname from pg_namespace as m where m.oid = p.pronamespace), p.proname,
        (select string_agg(format_type(a.type, null), ', ' order by a.nth)
         from unnest(p.proargtypes::oid[]) with ordinality as a (type, nth))),
      case when s.is_signature then e'drop routine {old};\n' else '' end || s.definition, true
    from (select distinct o.classid, o.objid, o.description from needing as o) as n
      join pg_proc as p on n.classid = 'pg_proc'::regclass and p.oid = n.objid and p.prokind in ('f', 'p')
      cross join lateral (
        select pg_get_functiondef(p.oid), exists (
          select from pg_type as y where y.typrelid = p_table
            and array[y.oid, y.typarray] && (p.prorettype || coalesce(p.proallargtypes, p.proargtypes::oid[])))
      ) as s (definition, is_signature)
    union all
    select n.classid, n.objid, n.description, 'other', null, null, null, null, null, null, null, null,
      coalesce((
        select format('alter table %1$s alter column %2$I type %3$s using jsonb_populate_record(null::%3$s, to_jsonb(%2$I))',
          a.attrelid::regclass, a.attname, p_table::regclass)
        from pg_attribute as a join pg_type as y on y.oid = a.atttypid and y.typrelid = p_table
        where n.classid = 'pg_class'::regclass and (a.attrelid, a.attnum) = (n.objid, n.objsubid)), ''), false
    from needing as n
    where not (n.classid = 'pg_constraint'::regclass and exists (select from pg_constraint as k where k.oid = n.objid and k.contype = 'f'))
      and not (n.classid = 'pg_proc'::regclass and exists (select from pg_proc as p where p.oid = n.objid and p.prokind in ('f', 'p')))
      and not (n.classid = 'pg_class'::regclass and n.objsubid = 0
        and exists (select from pg_inherits as h where (h.inhrelid, h.inhparent) = (n.objid, p_table)))
  )
  select array_agg(to_jsonb(f.*) || jsonb_build_object(
    'kind', case when f.is_known then f.kind else 'other' end, 'owner', pg_get_userbyid(f.owner), 'shown', rtrim(f.shown, e' ;\n'),
    'needs', to_jsonb({{swap}}.needs_of(f.classid, f.objid, 0, p_table))) order by f.objid)
  from found as f
$saved_dependents$;

-- move_dependents(table, name, deadline): moves the dependents of put-aside tables of this id to the table that has
-- this name now. Without a deadline, those that others hold are left for later. Old tables that nothing needs are
-- dropped.
create or replace function {{swap}}.move_dependents(p_table_id text, p_name text, p_deadline timestamptz) returns void
language plpgsql as $move_dependents$
declare
  one record;
begin
  for one in
    select k.description, k.saved from {{swap}}._kept_dependents as k
    where k.table_id = p_table_id and k.saved ->> 'kind' <> 'other' order by k.description
  loop
    begin
      continue when not {{swap}}.has_all_rights_of(one.saved ->> 'owner');
      perform {{swap}}.wait_until(coalesce(p_deadline, clock_timestamp() + interval '100 ms'));
      perform {{swap}}.move_dependent(one.saved, p_name);
      delete from {{swap}}._kept_dependents as k where k.description = one.description;
      delete from {{swap}}._sync_issues as i where (i.table_name, i.record_id, i.field) = (one.description, '', '');
    exception when others then
      if p_deadline is not null and {{swap}}.is_transient(sqlstate) then
        raise;
      end if;
      update {{swap}}._sync_issues as i
      set reason = regexp_replace(i.reason, '( \(.*\))?$', format(' (%s)', replace(sqlerrm, '\', '\\')))
      where (i.table_name, i.record_id, i.field) = (one.description, '', '');
    end;
  end loop;
end $move_dependents$;

-- move_dependent(saved, name): moves it. Raises an error if that is impossible, or if it would use something else.
create or replace function {{swap}}.move_dependent(p_saved jsonb, p_name text) returns void
language plpgsql as $move_dependent$
declare
  v_table text := format('{{schema}}.%I', p_name);
  v_object oid := (p_saved ->> 'objid')::oid;
  v_relation regclass := (p_saved ->> 'relation')::oid;
  v_part record;
begin
  case p_saved ->> 'kind'
    when 'reference' then
      execute format('alter table %s drop constraint %I', v_relation, p_saved ->> 'name');
      -- Existing rows are checked later: readers would wait for it.
      execute (p_saved ->> 'head') || v_table || (p_saved ->> 'tail') || ' not valid';
      if (p_saved ->> 'is_checked')::boolean then
        insert into {{swap}}._references_to_check values (v_relation, p_saved ->> 'name') on conflict do nothing;
      end if;
    when 'child' then
      execute format('alter table %s no inherit %s', v_relation,
        (select h.inhparent::regclass from unnest({{swap}}.kept_relations()) as k (oid)
          join pg_inherits as h on (h.inhrelid, h.inhparent) = (v_relation, k.oid)));
      for v_part in
        select format('alter table %s add column %I %s', v_relation, p.attname, format_type(p.atttypid, p.atttypmod)) as statement
        from pg_attribute as p
        where p.attrelid = v_table::regclass and p.attnum > 0 and not p.attisdropped and not exists (
          select from pg_attribute as c where c.attrelid = v_relation and c.attname = p.attname and not c.attisdropped)
        order by p.attnum
      loop
        execute v_part.statement;
      end loop;
      execute (p_saved ->> 'head') || v_table;
    when 'remake' then
      perform {{swap}}.remake_function(p_saved);
      v_object := (p_saved ->> 'identity')::regprocedure;
    else
      execute p_saved ->> 'definition';
  end case;
  if v_object is distinct from null and p_saved ->> 'kind' in ('remake', 'replace') and {{swap}}.needs_of(
    'pg_proc'::regclass, v_object, 0, v_table::regclass) <> array(select jsonb_array_elements_text(p_saved -> 'needs'))
  then
    raise exception 'it would use a different object than before' using errcode = 'BT004';
  end if;
end $move_dependent$;

-- remake_function(saved): a function with the table's row type in its signature is a new function, and gets the owner,
-- grants and comment of the old one.
create or replace function {{swap}}.remake_function(p_saved jsonb) returns void language plpgsql as $remake_function$
declare
  v_old oid := (p_saved ->> 'objid')::oid;
  v_identity text := p_saved ->> 'identity';
  v_comment text := obj_description(v_old, 'pg_proc');
  v_grants text[] := array(
    select format('grant execute on routine %s to %s%s', v_identity, {{swap}}.role_name(g.grantee),
      case when g.is_grantable then ' with grant option' else '' end)
    from pg_proc as p cross join aclexplode(p.proacl) as g where p.oid = v_old and g.grantee <> p.proowner);
  has_rights boolean := (select p.proacl is not null from pg_proc as p where p.oid = v_old);
  one text;
begin
  execute format('drop routine %s', v_old::regprocedure);
  execute p_saved ->> 'definition';
  if has_rights then
    execute format('revoke all on routine %s from public', v_identity);
  end if;
  foreach one in array v_grants loop
    execute one;
  end loop;
  if v_comment is not null then
    execute format('comment on routine %s is %L', v_identity, v_comment);
  end if;
  if p_saved ->> 'owner' <> current_user then
    execute format('alter routine %s owner to %I', v_identity, p_saved ->> 'owner');
  end if;
end $remake_function$;

-- free_sequences(relation): detaches the sequences of its columns, so that they survive. Returns the input of
-- own_sequences.
create or replace function {{swap}}.free_sequences(p_relation oid) returns jsonb language plpgsql as $free_sequences$
declare
  v_freed jsonb := (
    select coalesce(jsonb_agg(jsonb_build_object('sequence', d.objid::regclass::text, 'column', a.attname)), '[]')
    from pg_depend as d join pg_class as s on s.oid = d.objid and s.relkind = 'S'
      join pg_attribute as a on (a.attrelid, a.attnum) = (d.refobjid, d.refobjsubid)
    where d.classid = 'pg_class'::regclass and (d.refclassid, d.refobjid) = ('pg_class'::regclass, p_relation) and d.deptype = 'a');
begin
  perform {{swap}}.run(format('alter sequence %s owned by none', f.value ->> 'sequence')) from jsonb_array_elements(v_freed) as f;
  return v_freed;
end $free_sequences$;

-- own_sequences(freed, name): attaches them to the columns of the table that has this name now.
create or replace function {{swap}}.own_sequences(p_freed jsonb, p_name text) returns void language sql as $own_sequences$
  select {{swap}}.run(format('alter sequence %s owned by {{schema}}.%I.%I', f.value ->> 'sequence', p_name, f.value ->> 'column'))
  from jsonb_array_elements(p_freed) as f
  where exists (
    select from pg_attribute as a
    where a.attrelid = format('{{schema}}.%I', p_name)::regclass and a.attname = f.value ->> 'column' and not a.attisdropped)
$own_sequences$;

-- put_aside(relation, table): moves a locked table or view of ours to {{swap}}, with everything that needs it, and
-- reports the dependents.
create or replace function {{swap}}.put_aside(p_relation oid, p_table_id text) returns void language plpgsql as $put_aside$
declare
  v_name text := (select c.relname from pg_class as c where c.oid = p_relation);
  -- Saved while their texts contain the names that they will use again.
  v_saved jsonb[] := {{swap}}.saved_dependents(p_relation);
begin
  perform {{swap}}.free_part_names(p_relation);
  perform {{swap}}.move_relation(p_relation, '{{swap}}', '_kept_' || p_relation);
  insert into {{swap}}._kept_dependents (description, table_id, saved)
  select d.description, p_table_id, s.saved
  from {{swap}}.dependents_of(array[p_relation]) as d
    join unnest(v_saved) as s (saved) on (s.saved ->> 'classid')::oid = d.classid and (s.saved ->> 'objid')::oid = d.objid
  on conflict (description) do update set table_id = excluded.table_id, saved = excluded.saved;
  insert into {{swap}}._sync_issues (table_name, record_id, field, value, reason)
  select d.description, '', '', replace(s.saved ->> 'shown', '{old}', coalesce(
      (select p.oid::regprocedure::text from pg_proc as p where d.classid = 'pg_proc'::regclass and p.oid = d.objid),
      p_relation::regclass::text)), format('it still uses %s as it was before the last change: drop it and create it again',
    {{swap}}.shown_name(v_name))
  from {{swap}}.dependents_of(array[p_relation]) as d
    join unnest(v_saved) as s (saved) on (s.saved ->> 'classid')::oid = d.classid and (s.saved ->> 'objid')::oid = d.objid
  on conflict (table_name, record_id, field) do update
    set value = excluded.value, reason = excluded.reason, seen_at = excluded.seen_at;
end $put_aside$;

-- strip_kept(relation): removes from a put-aside table what its replacement has under the same name, or what would
-- block others.
create or replace function {{swap}}.strip_kept(p_relation oid) returns void language plpgsql as $strip_kept$
declare
  one text;
begin
  for one in
    select format('drop statistics %I.%I', n.nspname, s.stxname)
    from pg_statistic_ext as s join pg_namespace as n on n.oid = s.stxnamespace where s.stxrelid = p_relation
    union all
    select format('alter publication %I drop table only %s', p.pubname, p_relation::regclass)
    from pg_publication_rel as r join pg_publication as p on p.oid = r.prpubid where r.prrelid = p_relation
    union all
    select format('alter table %s drop constraint %I', p_relation::regclass, k.conname)
    from pg_constraint as k where k.conrelid = p_relation and k.contype = 'f'
  loop
    begin
      execute one;
    exception when others then
      if {{swap}}.is_transient(sqlstate) then
        raise;
      end if;
    end;
  end loop;
end $strip_kept$;

-- drop_kept(): drops put-aside tables and views that nothing needs any longer, and deletes the issues of objects that
-- no longer use one. Relations that others hold are left for the next time.
create or replace function {{swap}}.drop_kept() returns void language plpgsql as $drop_kept$
declare
  v_timeout text := current_setting('lock_timeout');
  one record;
begin
  if {{swap}}.kept_relations() = '{}' and not exists (select from {{swap}}._kept_dependents) then
    return;
  end if;
  for one in
    select c.oid, c.relname as name, c.relkind as kind
    from unnest({{swap}}.kept_relations()) as k (oid) join pg_class as c on c.oid = k.oid
    where not exists (select from {{swap}}.dependents_of(array[c.oid]))
      and not exists (select from {{swap}}.dependent_views(array[c.oid]))
      and not exists (
        select from {{swap}}._kept_values as v join {{swap}}._sync_issues as i on i.table_name = v.name
        where v.relation = c.oid and i.record_id = '' and i.field like 'column %')
  loop
    begin
      perform {{swap}}.wait_until(clock_timestamp() + interval '100 ms');
      execute format('drop %s {{swap}}.%I', case one.kind when 'v' then 'view' else 'table' end, one.name);
      delete from {{swap}}._kept_values as v where v.relation = one.oid;
    exception when dependent_objects_still_exist or lock_not_available then null;
    end;
  end loop;
  perform set_config('lock_timeout', v_timeout, true);
  with gone as (
    delete from {{swap}}._kept_dependents as k
    where k.description not in (select d.description from {{swap}}.dependents_of({{swap}}.kept_relations()) as d)
    returning k.description
  )
  delete from {{swap}}._sync_issues as i using gone as g
  where i.table_name = g.description and i.record_id = '' and i.field = '';
end $drop_kept$;

-- reference_checked(relation, name, error): a moved foreign key has been validated, or existing rows violate it
-- (error).
create or replace function {{swap}}.reference_checked(p_relation oid, p_name name, p_error text) returns void
language plpgsql as $reference_checked$
begin
  delete from {{swap}}._references_to_check as r where (r.relation, r.name) = (p_relation, p_name);
  perform {{swap}}.report_lost(pg_describe_object('pg_constraint'::regclass, k.oid, 0), '',
    format('alter table %s validate constraint %I', p_relation::regclass, p_name),
    'is enforced only for new rows since the rebuild of its table: ' || p_error)
  from pg_constraint as k where p_error is not null and k.conrelid = p_relation and k.conname = p_name;
end $reference_checked$;
