-- What others have put on our tables: rights, indexes, triggers, policies, foreign keys. Installed with install.sql.
--
-- A table that is rebuilt is another one to Postgres. What was put on the old one is put on the new one as well, where it
-- fits; everything else is reported in _sync_issues, with the statement that makes it.
--
-- Only our own role and superusers can put anything but a foreign key on a table of ours: the owner of a customer's own
-- database, who gave us their role. The statements run with our rights, so their texts name nothing but the table's
-- columns and what belongs to Postgres: a name of anybody else's could mean something else by now.

-- Things that stay on a table that was put aside, as Postgres describes them.
create table if not exists {{swap}}._kept_dependents (
  description text not null,
  constraint _kept_dependents_pkey primary key (description)
);

-- outside_needs(class, object, table): describes what the object needs besides the table, the code of Postgres and
-- trusted operator classes, which only superusers can make; null where that is nothing. p_function is not counted.
create or replace function {{swap}}.outside_needs(p_class oid, p_object oid, p_table oid, p_function oid default 0)
returns text language sql as $outside_needs$
  select string_agg(distinct pg_describe_object(d.refclassid, d.refobjid, 0), ', ')
  from pg_depend as d
  where (d.classid, d.objid) = (p_class, p_object)
    and (d.refclassid, d.refobjid) not in (('pg_class'::regclass, p_table), ('pg_proc'::regclass, p_function))
    and d.refclassid not in ('pg_collation'::regclass, 'pg_am'::regclass)
    and not (d.refclassid = 'pg_opclass'::regclass and {{swap}}.is_safe(d.refclassid, d.refobjid))
$outside_needs$;

-- used_columns(class, object, table): the table's columns that the object depends on.
create or replace function {{swap}}.used_columns(p_class oid, p_object oid, p_table oid) returns name[]
language sql as $used_columns$
  select array(
    select distinct a.attname
    from pg_depend as d join pg_attribute as a on a.attrelid = p_table and a.attnum = d.refobjsubid
    where (d.classid, d.objid, d.refclassid, d.refobjid) = (p_class, p_object, 'pg_class'::regclass, p_table)
      and d.refobjsubid > 0)
$used_columns$;

-- role_name(role): for SQL text; 0 is everybody.
create or replace function {{swap}}.role_name(p_role oid) returns text language sql as $role_name$
  select case p_role when 0 then 'public' else quote_ident(pg_get_userbyid(p_role)) end
$role_name$;

-- additions(table): what a live table of ours has that we have not put there. `head`, the table's name and `tail` are
-- the statement that makes it; `obstacle` is why it is not run.
--   stage   build: runs before the new table is live; live: after it; lost: never
create or replace function {{swap}}.additions(p_table oid) returns table (
  label text, stage text, head text, tail text, columns name[], obstacle text
) language sql as $additions$
  select format('grant %s to %s', lower(g.privilege_type), {{swap}}.role_name(g.grantee)), 'build',
    format('grant %s on ', g.privilege_type),
    format(' to %s%s', {{swap}}.role_name(g.grantee), case when g.is_grantable then ' with grant option' else '' end),
    '{}'::name[],
    case when g.privilege_type <> 'SELECT' then 'others may only read tables of Basetide' end
  from pg_class as c cross join aclexplode(c.relacl) as g
  where c.oid = p_table and g.grantee <> c.relowner
  union all
  select format('grant %s (%I) to %s', lower(g.privilege_type), a.attname, {{swap}}.role_name(g.grantee)), 'build',
    format('grant %s (%I) on ', g.privilege_type, a.attname),
    format(' to %s%s', {{swap}}.role_name(g.grantee), case when g.is_grantable then ' with grant option' else '' end),
    array[a.attname],
    case when g.privilege_type <> 'SELECT' then 'others may only read tables of Basetide' end
  from pg_class as c join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    cross join aclexplode(a.attacl) as g
  where c.oid = p_table and g.grantee <> c.relowner
  union all
  select 'storage parameters', 'build', 'alter table ', format(' set (%s)', array_to_string(c.reloptions, ', ')), '{}', null
  from pg_class as c where c.oid = p_table and c.reloptions is not null
  union all
  select 'row level security', 'build', 'alter table ', ' enable row level security', '{}', null
  from pg_class as c where c.oid = p_table and c.relrowsecurity
  union all
  select 'forced row level security', 'lost', 'alter table ', ' force row level security', '{}',
    'it would hide rows from Basetide itself'
  from pg_class as c where c.oid = p_table and c.relforcerowsecurity
  union all
  select 'policy ' || p.polname, 'build', format('create policy %I on ', p.polname),
    format(' as %s for %s to %s%s%s', case when p.polpermissive then 'permissive' else 'restrictive' end,
      case p.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete' else 'all' end,
      (select string_agg({{swap}}.role_name(r.role), ', ') from unnest(p.polroles) as r (role)),
      ' using (' || pg_get_expr(p.polqual, p.polrelid) || ')',
      ' with check (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')'),
    {{swap}}.used_columns('pg_policy'::regclass, p.oid, p_table),
    'it uses ' || {{swap}}.outside_needs('pg_policy'::regclass, p.oid, p_table)
  from pg_policy as p where p.polrelid = p_table
  union all
  select 'index ' || c.relname, 'build',
    format('create %sindex %I on ', case when i.indisunique then 'unique ' else '' end, c.relname),
    ' using ' || substr(d.text, length(d.head) + 1),
    {{swap}}.used_columns('pg_class'::regclass, c.oid, p_table),
    case when starts_with(d.text, d.head) then 'it uses ' || {{swap}}.outside_needs('pg_class'::regclass, c.oid, p_table)
      else 'its definition is not understood' end
  from pg_index as i join pg_class as c on c.oid = i.indexrelid
    cross join lateral (
      select pg_get_indexdef(c.oid), format('CREATE %sINDEX %I ON %s USING ',
        case when i.indisunique then 'UNIQUE ' else '' end, c.relname, p_table::regclass)
    ) as d (text, head)
  where i.indrelid = p_table and not exists (select from pg_constraint as k where k.conindid = c.oid and k.conrelid = p_table)
  union all
  select 'trigger ' || t.tgname, 'live', split_part(d.text, d.cut, 1) || ' ON ',
    ' ' || substr(d.text, strpos(d.text, d.cut) + length(d.cut)),
    {{swap}}.used_columns('pg_trigger'::regclass, t.oid, p_table),
    case when t.tgenabled <> 'O' then 'it is disabled, or fires in other cases than usual'
      when not {{swap}}.is_trusted(p.proowner) then format('it uses function %s, which is not Basetide''s', p.oid::regprocedure)
      else 'it uses ' || {{swap}}.outside_needs('pg_trigger'::regclass, t.oid, p_table, t.tgfoid) end
  from pg_trigger as t join pg_proc as p on p.oid = t.tgfoid
    cross join lateral (select pg_get_triggerdef(t.oid), format(' ON %s ', p_table::regclass)) as d (text, cut)
  where t.tgrelid = p_table and not t.tgisinternal
  union all
  select 'constraint ' || k.conname, 'lost', 'alter table ',
    format(' add constraint %I %s', k.conname, pg_get_constraintdef(k.oid)), '{}', 'it could stop the sync'
  from pg_constraint as k where k.conrelid = p_table and k.contype in ('c', 'f', 'u', 'x')
  union all
  select 'rule ' || r.rulename, 'lost', pg_get_ruledef(r.oid) || ' -- on ', '', '{}', 'it would change what Basetide writes'
  from pg_rewrite as r where r.ev_class = p_table
  union all
  select 'statistics ' || s.stxname, 'lost', pg_get_statisticsobjdef(s.oid) || ' -- on ', '', '{}', 'statistics are not made again'
  from pg_statistic_ext as s where s.stxrelid = p_table
  union all
  select 'publication ' || p.pubname, 'lost', format('alter publication %I add table ', p.pubname), '', '{}',
    'the publication is not Basetide''s'
  from pg_publication_rel as r join pg_publication as p on p.oid = r.prpubid where r.prrelid = p_table
  union all
  select 'column ' || a.attname, 'lost', 'alter table ',
    format(' add column %I %s', a.attname, format_type(a.atttypid, a.atttypmod)), '{}', 'it is no field of the source'
  from pg_class as c join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    join {{swap}}._tables as t on t.name = c.relname
  where c.oid = p_table and a.attname not in ('id', 'created_time')
    and not exists (select from jsonb_array_elements(t.spec -> 'columns') as s (value) where s.value ->> 'name' = a.attname)
$additions$;

-- additions_for(live, table): the additions of a live table, for the one that takes its place: the columns that they need
-- must have the same names there.
create or replace function {{swap}}.additions_for(p_live {{swap}}._tables, p_table jsonb) returns jsonb
language sql as $additions_for$
  with stays (name) as (
    select o.name
    from jsonb_to_recordset(p_live.spec -> 'columns') as o ("fieldId" text, name text)
      join jsonb_to_recordset(p_table #> '{spec,columns}') as n ("fieldId" text, name text) using ("fieldId", name)
    union all values ('id'), ('created_time')
  ), found as (
    select a.label, a.stage, a.head, a.tail, coalesce(a.obstacle, (
        select format('its column %I is gone, or has another name', u.name)
        from unnest(a.columns) as u (name) where u.name not in (select s.name from stays as s) limit 1)) as obstacle
    from {{swap}}.additions(format('{{schema}}.%I', p_live.name)::regclass) as a
  )
  select coalesce(jsonb_agg(to_jsonb(f.*)), '[]') from found as f
$additions_for$;

-- carry_over(additions, stages, target, name): puts those of these stages on `target`. What cannot be is reported, under
-- the table's name. Where a policy is missing the others go as well, as they might show too much: all rows are hidden.
create or replace function {{swap}}.carry_over(p_additions jsonb, p_stages text[], p_target text, p_name text) returns void
language plpgsql as $carry_over$
declare
  one record;
  v_error text;
  is_policy_missing boolean := false;
begin
  for one in
    select * from jsonb_to_recordset(p_additions) as a (label text, stage text, head text, tail text, obstacle text)
    where a.stage = any (p_stages)
    -- Policies that cannot be made come first.
    order by a.obstacle is null
  loop
    v_error := coalesce(one.obstacle, case when is_policy_missing and one.label like 'policy %' then
      'another policy of the table cannot be made again' end);
    if v_error is null then
      begin
        execute one.head || p_target || one.tail;
        -- The name in its text may have come to mean somebody else's function.
        if exists (
          select from pg_trigger as t join pg_proc as p on p.oid = t.tgfoid
          where t.tgrelid = p_target::regclass and not t.tgisinternal and not {{swap}}.is_trusted(p.proowner)
        ) then
          raise exception 'it uses a function that is not Basetide''s' using errcode = 'BT004';
        end if;
      exception when others then
        if {{swap}}.is_passing(sqlstate) then
          raise;
        end if;
        v_error := sqlerrm;
      end;
    end if;
    if v_error is not null then
      perform {{swap}}.report_lost(p_name, one.label, one.head || {{swap}}.shown_name(p_name) || one.tail,
        'not on the table any more since it was rebuilt: ' || v_error);
      is_policy_missing := is_policy_missing or one.label like 'policy %';
    end if;
  end loop;
  if is_policy_missing then
    perform {{swap}}.drop_policies(p_additions, p_target, p_name);
  end if;
end $carry_over$;

-- drop_policies(additions, target, name): drops those that were made before one of them failed.
create or replace function {{swap}}.drop_policies(p_additions jsonb, p_target text, p_name text) returns void
language plpgsql as $drop_policies$
declare
  one record;
begin
  for one in
    select p.polname, a.label, a.head, a.tail
    from pg_policy as p join jsonb_to_recordset(p_additions) as a (label text, head text, tail text)
      on a.label = 'policy ' || p.polname
    where p.polrelid = p_target::regclass
  loop
    execute format('drop policy %I on %s', one.polname, p_target);
    perform {{swap}}.report_lost(p_name, one.label, one.head || {{swap}}.shown_name(p_name) || one.tail,
      'not on the table any more since it was rebuilt: another policy of the table cannot be made again');
  end loop;
end $drop_policies$;

-- is_passing(state): locks, lost connections, full disks: the whole change is tried again.
create or replace function {{swap}}.is_passing(p_state text) returns boolean language sql immutable as $is_passing$
  select left(p_state, 2) in ('40', '53', '57', '58') or p_state = '55P03'
$is_passing$;

-- report_lost(table, label, statement, reason): in _sync_issues.
create or replace function {{swap}}.report_lost(p_name text, p_label text, p_statement text, p_reason text) returns void
language sql as $report_lost$
  insert into {{swap}}._sync_issues (table_name, record_id, field, value, reason)
  values (p_name, '', p_label, p_statement, p_reason)
  on conflict (table_name, record_id, field) do update
    set value = excluded.value, reason = excluded.reason, seen_at = excluded.seen_at
$report_lost$;

-- grant_reads(built, live name): those who may read the live table may read the one that takes its place (carry_over);
-- a new table is for those to read whom the customer's default privileges name.
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

-- take_references(table, deadline): drops the foreign keys that point at the table's id, on tables of our role. Returns
-- what it takes to make them again. Others stay, and their table with them.
create or replace function {{swap}}.take_references(p_table oid, p_deadline timestamptz) returns jsonb
language plpgsql as $take_references$
declare
  one record;
  taken jsonb := '[]';
begin
  for one in
    select k.conname as name, c.oid::regclass::text as "table", d.head, substr(d.text, length(d.head) + 1) as tail,
      format('FOREIGN KEY (%s) REFERENCES ', d.columns) as "key"
    from pg_constraint as k join pg_class as c on c.oid = k.conrelid
      cross join lateral (
        select string_agg(quote_ident(a.attname), ', ' order by u.nth)
        from unnest(k.conkey) with ordinality as u (attnum, nth)
          join pg_attribute as a on a.attrelid = c.oid and a.attnum = u.attnum
      ) as n (columns)
      cross join lateral (
        select n.columns, pg_get_constraintdef(k.oid),
          format('FOREIGN KEY (%s) REFERENCES %s(id)', n.columns, p_table::regclass)
      ) as d (columns, text, head)
    where k.confrelid = p_table and k.conrelid <> p_table and k.contype = 'f' and k.conparentid = 0 and c.relkind = 'r'
      and c.relowner = {{swap}}.our_role() and starts_with(d.text, d.head)
    order by c.oid, k.conname
  loop
    perform {{swap}}.wait_until(p_deadline);
    execute format('alter table %s drop constraint %I', one."table", one.name);
    taken := taken || jsonb_build_object('name', one.name, 'table', one."table", 'key', one."key",
      'tail', regexp_replace(one.tail, ' NOT VALID$', ''));
  end loop;
  return taken;
end $take_references$;

-- give_references(taken, name): makes them again, to the table that has this name now. Rows that are there are not
-- checked: readers would wait for it.
create or replace function {{swap}}.give_references(p_taken jsonb, p_name text) returns void
language plpgsql as $give_references$
declare
  one record;
  statement text;
begin
  for one in select * from jsonb_to_recordset(p_taken) as t (name text, "table" text, "key" text, tail text) loop
    statement := format('alter table %s add constraint %I %s{{schema}}.%I (id)%s NOT VALID',
      one."table", one.name, one."key", p_name, one.tail);
    begin
      execute statement;
    exception when others then
      if {{swap}}.is_passing(sqlstate) then
        raise;
      end if;
      perform {{swap}}.report_lost(p_name, format('constraint %s on table %s', one.name, one."table"), statement,
        'not there any more since the table was rebuilt: ' || sqlerrm);
    end;
  end loop;
end $give_references$;

-- dependents_of(relations): describes what needs tables or views that were put aside; without views, which have issues of
-- their own.
create or replace function {{swap}}.dependents_of(p_relations oid[]) returns setof text language sql as $dependents_of$
  with part (classid, objid) as (
    select 'pg_class'::regclass::oid, r.oid from unnest(p_relations) as r (oid)
    union all select 'pg_type'::regclass, t.oid from pg_type as t where t.typrelid = any (p_relations)
    union all select 'pg_type'::regclass, t.typarray from pg_type as t where t.typrelid = any (p_relations)
    union all select 'pg_class'::regclass, i.indexrelid from pg_index as i where i.indrelid = any (p_relations)
    union all select 'pg_constraint'::regclass, k.oid from pg_constraint as k where k.conrelid = any (p_relations)
    union all select 'pg_trigger'::regclass, t.oid from pg_trigger as t where t.tgrelid = any (p_relations)
    union all select 'pg_policy'::regclass, p.oid from pg_policy as p where p.polrelid = any (p_relations)
  )
  select distinct pg_describe_object(d.classid, d.objid, d.objsubid)
  from part join pg_depend as d on (d.refclassid, d.refobjid) = (part.classid, part.objid)
  where d.deptype = 'n' and d.classid <> 'pg_rewrite'::regclass
    and (d.classid, d.objid) not in (select p.classid, p.objid from part as p)
$dependents_of$;

-- kept_relations(): tables and views that were put aside.
create or replace function {{swap}}.kept_relations() returns oid[] language sql as $kept_relations$
  select array(
    select c.oid from pg_class as c
    where c.relnamespace = '{{swap}}'::regnamespace and c.relkind in ('r', 'v') and starts_with(c.relname, '_kept_')
      and c.relname ~ '^_kept_[0-9]+$')
$kept_relations$;

-- report_kept(relation, name): what stays on a table or a view that is put aside.
create or replace function {{swap}}.report_kept(p_relation oid, p_name text) returns void
language sql as $report_kept$
  with kept as (
    insert into {{swap}}._kept_dependents select d.description from {{swap}}.dependents_of(array[p_relation]) as d (description)
    on conflict (description) do update set description = excluded.description
    returning description
  )
  insert into {{swap}}._sync_issues (table_name, record_id, field, value, reason)
  select k.description, '', '', '', format('it still uses %s as it was before the last change: drop it and make it again',
    {{swap}}.shown_name(p_name))
  from kept as k
  on conflict (table_name, record_id, field) do update set reason = excluded.reason, seen_at = excluded.seen_at
$report_kept$;

-- forget_carried(): issues whose cause is gone: what was lost is on the table again, or what was kept needs no old table
-- any more. Old tables that nothing needs go. Once for each lease: a change of shape has readers waiting.
create or replace function {{swap}}.forget_carried() returns void language plpgsql as $forget_carried$
declare
  v_timeout text := current_setting('lock_timeout');
  one record;
begin
  delete from {{swap}}._sync_issues as i using {{swap}}._tables as t
  where i.record_id = '' and i.field <> '' and i.table_name = t.name and i.field in (
    select a.label from {{swap}}.additions(to_regclass(format('{{schema}}.%I', t.name))) as a);
  if {{swap}}.kept_relations() = '{}' and not exists (select from {{swap}}._kept_dependents) then
    return;
  end if;
  for one in
    select c.relname as name, c.relkind as kind from pg_class as c
    where c.oid = any ({{swap}}.kept_relations()) and not exists (select from {{swap}}.dependents_of(array[c.oid]))
      and not exists (select from {{swap}}.dependent_views(array[c.oid]))
  loop
    begin
      perform {{swap}}.wait_until(clock_timestamp() + interval '100 ms');
      execute format('drop %s {{swap}}.%I', case one.kind when 'v' then 'view' else 'table' end, one.name);
    exception when dependent_objects_still_exist or lock_not_available then null;
    end;
  end loop;
  perform set_config('lock_timeout', v_timeout, true);
  with gone as (
    delete from {{swap}}._kept_dependents as k
    where k.description not in (select d.description from {{swap}}.dependents_of({{swap}}.kept_relations()) as d (description))
    returning k.description
  )
  delete from {{swap}}._sync_issues as i using gone as g
  where i.table_name = g.description and i.record_id = '' and i.field = '';
end $forget_carried$;
