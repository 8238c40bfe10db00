-- Carries what others have put on a column of ours over to the column that takes its place: a field got another type.
-- Installed with install.sql.
--
-- The old column gets a name of ours, and the new one its name. Then each object that needs the old column is created
-- again from its text, as Postgres describes it, which now names the new column. An object that no longer fits is
-- reported in _sync_issues, with its statements. If something is left that needs the old column, because we may not
-- change it, the column stays under the name of ours until nothing needs it; that is reported, too.
--
-- The same is done when a field is deleted: no column takes the place, so the objects are reported.
-- Views over columns: views.sql. Statements run with our rights; needs.sql says why that runs no code that did not run
-- before.

-- Constraints that were added without a check of the existing rows, and must be validated: core/replica/references.ts.
create table if not exists {{swap}}._references_to_check (
  relation oid not null,
  name name not null,
  constraint _references_to_check_pkey primary key (relation, name)
);

-- twins_of(table): indexes of ours on new columns that are being filled, for others' indexes (fill-columns.sql).
create or replace function {{swap}}.twins_of(p_table oid) returns table (name name) language sql stable as $twins_of$
  select c.relname from pg_index as i join pg_class as c on c.oid = i.indexrelid
  where i.indrelid = p_table and c.relname ~ '^_filling_[0-9]+$'
$twins_of$;

-- generated_over(table, columns): the generated columns that need these: they are created again, too.
create or replace function {{swap}}.generated_over(p_table oid, p_columns smallint[]) returns smallint[]
language sql as $generated_over$
  select array(
    select distinct a.attnum from pg_attribute as a
      left join pg_attrdef as f on (f.adrelid, f.adnum) = (a.attrelid, a.attnum)
      join pg_depend as d on (d.classid, d.objid) = ('pg_attrdef'::regclass, f.oid)
        or (d.classid, d.objid, d.objsubid) = ('pg_class'::regclass, a.attrelid, a.attnum::integer)
    where a.attrelid = p_table and a.attgenerated <> '' and not a.attisdropped
      and d.refclassid = 'pg_class'::regclass and d.refobjid = p_table and d.refobjsubid = any (p_columns))
$generated_over$;

-- text_after(text, head): the text without its head; null if it begins otherwise.
create or replace function {{swap}}.text_after(p_text text, p_head text) returns text language sql immutable as $text_after$
  select case when starts_with(p_text, p_head) then substr(p_text, length(p_head) + 1) end
$text_after$;

-- column_parts(table, columns, published): what others have put on these columns, in the order in which it is created; published:
-- with all publications of the table itself, and all policies.
--   class, object  its address in the catalog; part: the column, of a property of one
--   taken    the statement that removes it, if that is needed     made     the statements that create it
--   probe    the expression that Postgres evaluates while it is created
--   needs    what it depends on, except the table                 columns  those that it uses
create or replace function {{swap}}.column_parts(p_table oid, p_columns smallint[], p_published boolean default false) returns table (
  label text, kind text, name text, place integer, class oid, object oid, part integer, taken text, made text[], probe text,
  needs text[], columns smallint[]
) language sql as $column_parts$
  with this as (
    select p_table::regclass::text as t
  ), need as (
    -- An index of a constraint has dependencies of its own.
    select case when k.oid is null then d.classid else 'pg_constraint'::regclass end as classid, coalesce(k.oid, d.objid) as objid,
      array_agg(distinct d.refobjsubid::smallint) as columns
    from pg_depend as d
      left join pg_constraint as k on d.classid = 'pg_class'::regclass and k.conindid = d.objid and k.conrelid = p_table and k.contype in ('u', 'x')
    where d.refclassid = 'pg_class'::regclass and d.refobjid = p_table and d.refobjsubid = any (p_columns) and d.deptype in ('n', 'a')
    group by 1, 2
    union
    select 'pg_publication_rel'::regclass, r.oid, '{}'::smallint[] from pg_publication_rel as r where p_published and r.prrelid = p_table
    union
    select 'pg_policy'::regclass, p.oid, '{}' from pg_policy as p where p_published and p.polrelid = p_table
  ), own as (
    select a.*, c.nspname from pg_attribute as a, (
      select n.nspname from pg_class as c join pg_namespace as n on n.oid = c.relnamespace where c.oid = p_table) as c
    where a.attrelid = p_table and a.attnum = any (p_columns) and not a.attisdropped
      and a.attname not in (select l.name from pg_class as c join {{swap}}._tables as t on t.name = c.relname
        cross join {{swap}}.alias_columns(p_table, t.table_id) as l where c.oid = p_table)
  ), found (label, kind, name, place, class, object, part, taken, made, probe, columns) as (
    select 'sequence ' || s.oid::regclass, 'sequence', null, 5, n.classid, n.objid, 0, format('alter sequence %s owned by none', s.oid::regclass),
      array[format('alter sequence %s owned by %s.%I', s.oid::regclass, this.t, o.attname)], null, n.columns
    from this cross join need as n join pg_class as s on n.classid = 'pg_class'::regclass and s.oid = n.objid and s.relkind = 'S'
      join own as o on o.attnum = n.columns[1]
    union all
    select 'column ' || o.attname, 'column', o.attname, 10, 'pg_class'::regclass, p_table, o.attnum, format('alter table %s drop column %I', this.t, o.attname),
      array[format('alter table %s add column %I %s generated always as (%s) %s', this.t, o.attname, format_type(o.atttypid, o.atttypmod),
        pg_get_expr(f.adbin, f.adrelid), case o.attgenerated when 's' then 'stored' else 'virtual' end)],
      pg_get_expr(f.adbin, f.adrelid), array(select u.attnum from unnest({{swap}}.used_columns('pg_attrdef'::regclass, f.oid, p_table)) as c (name)
        join pg_attribute as u on u.attrelid = p_table and u.attname = c.name where u.attnum <> o.attnum)
    from this cross join own as o join pg_attrdef as f on (f.adrelid, f.adnum) = (o.attrelid, o.attnum) where o.attgenerated <> ''
    union all
    select 'default ' || o.attname, 'default', o.attname, 35, 'pg_attrdef'::regclass, f.oid, 0, null,
      array[format('alter table %s alter column %I set default %s', this.t, o.attname, pg_get_expr(f.adbin, f.adrelid))], null, array[o.attnum]
    from this cross join own as o join pg_attrdef as f on (f.adrelid, f.adnum) = (o.attrelid, o.attnum) where o.attgenerated = ''
    union all
    select 'not null ' || o.attname, 'not null', o.attname, 35, 'pg_class'::regclass, p_table, o.attnum, null,
      array[format('alter table %s alter column %I set not null', this.t, o.attname)], null, array[o.attnum]
    from this cross join own as o where o.attnotnull and not exists (
      select from pg_constraint as k where k.conrelid = p_table and k.contype = 'n' and k.conkey = array[o.attnum])
    union all
    select 'column options ' || o.attname, 'column options', o.attname, 85, 'pg_class'::regclass, p_table, o.attnum, null,
      array(select format('alter table %s alter column %I set statistics %s', this.t, o.attname, o.attstattarget) where coalesce(o.attstattarget, -1) >= 0)
        || array(select format('alter table %s alter column %I set (%s)', this.t, o.attname, array_to_string(o.attoptions, ', ')) where o.attoptions is not null),
      null, array[o.attnum]
    from this cross join own as o where coalesce(o.attstattarget, -1) >= 0 or o.attoptions is not null
    union all
    select format('grant %s (%I) to %s', lower(g.privilege_type), o.attname, {{swap}}.role_name(g.grantee)), 'grant', o.attname, 90,
      'pg_class'::regclass, p_table, o.attnum, null,
      array[format('grant %s (%I) on %s to %s%s', g.privilege_type, o.attname, this.t, {{swap}}.role_name(g.grantee),
        case when g.is_grantable then ' with grant option' else '' end)], null, array[o.attnum]
    from this cross join own as o cross join aclexplode(o.attacl) as g
    where g.grantee <> (select c.relowner from pg_class as c where c.oid = p_table)
    union all
    select 'comment on column ' || quote_ident(o.attname), 'comment', o.attname, 95, 'pg_class'::regclass, p_table, o.attnum, null,
      array[format('comment on column %s.%I is %L', this.t, o.attname, col_description(p_table, o.attnum))], null, array[o.attnum]
    from this cross join own as o
    -- Ours have the field's id in their second paragraph.
    where col_description(p_table, o.attnum) is not null
      and (split_part(col_description(p_table, o.attnum), e'\n\n', 2) !~ '^[^[:space:]]+, ' or o.attgenerated <> '')
    union all
    select case when k.conrelid = p_table then 'constraint ' || k.conname else pg_describe_object(n.classid, n.objid, 0) end,
      'constraint', k.conname, case when k.conrelid <> p_table then 55 else case k.contype when 'n' then 36 when 'c' then 40 when 'f' then 50 else 45 end end,
      n.classid, n.objid, 0, format('alter table %s drop constraint %I', k.conrelid::regclass, k.conname),
      array[format('alter table %s add constraint %I %s%s', k.conrelid::regclass, k.conname, regexp_replace(d.text, ' NOT VALID$', ''),
        -- Existing rows are checked later: readers would wait for it.
        case when k.contype in ('c', 'f') then ' not valid' else '' end)]
        || array(select format('alter table %s replica identity using index %I', this.t, c.relname)
          from pg_index as i join pg_class as c on c.oid = i.indexrelid where i.indexrelid = k.conindid and i.indisreplident and k.conrelid = p_table),
      case k.contype when 'x' then pg_get_expr(k.conbin, k.conrelid) end, n.columns
    from this cross join need as n join pg_constraint as k on n.classid = 'pg_constraint'::regclass and k.oid = n.objid
      cross join lateral (select pg_get_constraintdef(k.oid)) as d (text)
    where k.conparentid = 0
    union all
    select 'index ' || c.relname, 'index', c.relname, 60, n.classid, n.objid, 0, format('drop index %s', c.oid::regclass),
      array[pg_get_indexdef(c.oid)]
        || array(select format('alter table %s cluster on %I', this.t, c.relname) where i.indisclustered)
        || array(select format('alter table %s replica identity using index %I', this.t, c.relname) where i.indisreplident),
      nullif(concat_ws(', ', pg_get_expr(i.indexprs, p_table), pg_get_expr(i.indpred, p_table)), ''), n.columns
    from this cross join need as n join pg_class as c on n.classid = 'pg_class'::regclass and c.oid = n.objid
      join pg_index as i on i.indexrelid = c.oid
    where i.indrelid = p_table and not exists (select from pg_constraint as k where k.conindid = c.oid and k.conrelid = p_table)
    union all
    select 'statistics ' || s.stxname, 'statistics', s.stxname, 70, n.classid, n.objid, 0, format('drop statistics %I.%I', m.nspname, s.stxname),
      array[pg_get_statisticsobjdef(s.oid)] || array(
        select format('alter statistics %I.%I set statistics %s', m.nspname, s.stxname, s.stxstattarget) where coalesce(s.stxstattarget, -1) >= 0),
      null, n.columns
    from need as n join pg_statistic_ext as s on n.classid = 'pg_statistic_ext'::regclass and s.oid = n.objid
      join pg_namespace as m on m.oid = s.stxnamespace
    union all
    select 'policy ' || p.polname, 'policy', p.polname, 80, n.classid, n.objid, 0, format('drop policy %I on %s', p.polname, this.t),
      array[format('create policy %I on %s as %s for %s to %s%s%s', p.polname, this.t, case when p.polpermissive then 'permissive' else 'restrictive' end,
        case p.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete' else 'all' end,
        (select string_agg({{swap}}.role_name(r.role), ', ') from unnest(p.polroles) as r (role)),
        ' using (' || pg_get_expr(p.polqual, p.polrelid) || ')',
        ' with check (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')')], null, n.columns
    from this cross join need as n join pg_policy as p on n.classid = 'pg_policy'::regclass and p.oid = n.objid and p.polrelid = p_table
    union all
    select 'trigger ' || t.tgname, 'trigger', t.tgname, 87, n.classid, n.objid, 0, format('drop trigger %I on %s', t.tgname, this.t),
      array[pg_get_triggerdef(t.oid)] || array(select format('alter table %s %s trigger %I', this.t,
          case t.tgenabled when 'D' then 'disable' when 'R' then 'enable replica' else 'enable always' end, t.tgname)
        where t.tgenabled <> 'O'), null, n.columns
    from this cross join need as n join pg_trigger as t on n.classid = 'pg_trigger'::regclass and t.oid = n.objid and t.tgrelid = p_table
    union all
    select 'rule ' || r.rulename, 'rule', r.rulename, 88, n.classid, n.objid, 0, format('drop rule %I on %s', r.rulename, this.t),
      array[pg_get_ruledef(r.oid)] || array(select format('alter table %s %s rule %I', this.t,
          case r.ev_enabled when 'D' then 'disable' when 'R' then 'enable replica' else 'enable always' end, r.rulename)
        where r.ev_enabled <> 'O'), null, n.columns
    from this cross join need as n join pg_rewrite as r on n.classid = 'pg_rewrite'::regclass and r.oid = n.objid and r.ev_class = p_table
    union all
    select 'publication ' || p.pubname, 'publication', p.pubname, 89, n.classid, n.objid, 0, format('alter publication %I drop table only %s', p.pubname, this.t),
      array[format('alter publication %I add table only %s', p.pubname, this.t) || coalesce(' (' || (
          select string_agg(quote_ident(a.attname), ', ' order by a.attnum)
          from pg_attribute as a where a.attrelid = p_table and a.attnum = any (r.prattrs::smallint[])) || ')', '')
        || coalesce(' where (' || pg_get_expr(r.prqual, p_table) || ')', '')], null, n.columns
    from this cross join need as n join pg_publication_rel as r on n.classid = 'pg_publication_rel'::regclass and r.oid = n.objid
      join pg_publication as p on p.oid = r.prpubid
    union all
    -- Its text is replaced, so that nothing that needs it is lost.
    select pg_describe_object(n.classid, n.objid, 0), 'function', null, 92, n.classid, n.objid, 0, null, array[pg_get_functiondef(p.oid)], null, n.columns
    from need as n join pg_proc as p on n.classid = 'pg_proc'::regclass and p.oid = n.objid and p.prokind in ('f', 'p')
  )
  select f.label, f.kind, f.name, f.place, f.class, f.object, f.part, f.taken, f.made || array(
      select format('comment on %s is %L', c.what, d.description)
      from this cross join pg_description as d cross join lateral (
        select case when f.kind in ('policy', 'trigger', 'rule') then format('%s %I on %s', f.kind, f.name, this.t)
          when f.kind = 'constraint' then format('constraint %I on %s', f.name, (select k.conrelid::regclass from pg_constraint as k where k.oid = f.object))
          when f.kind = 'index' then format('index %s', f.object::regclass)
          when f.kind = 'statistics' then (select format('statistics %I.%I', m.nspname, s.stxname)
            from pg_statistic_ext as s join pg_namespace as m on m.oid = s.stxnamespace where s.oid = f.object) end) as c (what)
      where (d.classoid, d.objoid, d.objsubid) = (f.class, f.object, 0) and c.what is not null),
    f.probe, case f.kind when 'function' then {{swap}}.needs_of(f.class, f.object, f.part, p_table)
      else {{swap}}.all_needs(p_table, f.kind, f.name) end, f.columns
  from found as f order by f.place, f.label
$column_parts$;

-- take_parts(table, parts, deadline): removes the parts, which need columns that have names of ours by now; functions get
-- their new texts. Returns the labels of those that we may not change.
create or replace function {{swap}}.take_parts(p_table oid, p_parts jsonb, p_deadline timestamptz) returns text[]
language plpgsql as $take_parts$
declare
  one jsonb;
  v_left text[] := '{}';
begin
  for one in
    select p.value from jsonb_array_elements(p_parts) as p
    where p.value ->> 'taken' is not null or p.value ->> 'kind' = 'function'
    order by (p.value ->> 'place')::integer desc, p.value ->> 'label'
  loop
    perform {{swap}}.wait_until(p_deadline);
    if {{swap}}.attempt(coalesce(one ->> 'taken', {{swap}}.making(p_table, one))) is not null then
      v_left := v_left || (one ->> 'label');
    end if;
  end loop;
  return v_left;
end $take_parts$;

-- make_parts(table, name, parts, lost, left): creates the others again. Those with one of the columns `lost` are reported
-- instead, like those that do not fit.
create or replace function {{swap}}.make_parts(
  p_table oid, p_name text, p_parts jsonb, p_lost smallint[], p_left text[]
) returns void language plpgsql as $make_parts$
declare
  one jsonb;
  v_error text;
  is_policy_missing boolean := false;
begin
  for one in
    select p.value from jsonb_array_elements(p_parts) as p
    where p.value ->> 'label' <> all (p_left) and p.value ->> 'kind' <> 'function'
    order by (p.value ->> 'place')::integer, p.value ->> 'label'
  loop
    v_error := case
      when exists (select from jsonb_array_elements_text(one -> 'columns') as c where c::smallint = any (p_lost))
        then 'its column was dropped'
      when is_policy_missing and one ->> 'kind' = 'policy' then 'another policy of the table cannot be created again'
      else {{swap}}.attempt({{swap}}.making(p_table, one)) end;
    continue when v_error is null;
    is_policy_missing := is_policy_missing or one ->> 'kind' = 'policy';
    perform {{swap}}.report_lost(p_name, one ->> 'label', {{swap}}.part_text(one), 'no longer on the table since its last change: ' || v_error);
  end loop;
  if is_policy_missing then
    perform {{swap}}.drop_policies(p_table, p_name);
  end if;
end $make_parts$;

-- part_text(part): the statements that create it, for people.
create or replace function {{swap}}.part_text(p_part jsonb) returns text language sql immutable as $part_text$
  select string_agg(rtrim(m.value, e' ;\n'), e';\n' order by m.nth)
  from jsonb_array_elements_text(p_part -> 'made') with ordinality as m (value, nth)
$part_text$;

-- making(table, part): the statement that calls make_part.
create or replace function {{swap}}.making(p_table oid, p_part jsonb) returns text language sql immutable as $making$
  select format('select {{swap}}.make_part(%s, %L)', p_table, p_part)
$making$;

-- make_part(table, part): creates it. Raises an error if that is impossible, or if the result would mean something else.
create or replace function {{swap}}.make_part(p_table oid, p_part jsonb) returns void language plpgsql as $make_part$
declare
  v_needs text[] := array(select jsonb_array_elements_text(p_part -> 'needs'));
  v_twin text := '_filling_' || (p_part ->> 'object');
  one text;
begin
  perform {{swap}}.probe_expression(p_part ->> 'probe', p_table, v_needs);
  if p_part ->> 'kind' = 'index' and exists (select from {{swap}}.twins_of(p_table) as t where t.name = v_twin) then
    execute format('alter index {{schema}}.%I rename to %I', v_twin, p_part ->> 'name');
    if pg_get_indexdef(format('{{schema}}.%I', p_part ->> 'name')::regclass) = p_part -> 'made' ->> 0 then
      p_part := jsonb_set(p_part, '{made}', (p_part -> 'made') - 0);
    else
      execute format('drop index {{schema}}.%I', p_part ->> 'name');
    end if;
  end if;
  for one in select jsonb_array_elements_text(p_part -> 'made') loop
    execute one;
  end loop;
  if not (case p_part ->> 'kind' when 'function' then
      {{swap}}.needs_of('pg_proc'::regclass, (p_part ->> 'object')::oid, 0, p_table)
    else {{swap}}.all_needs(p_table, p_part ->> 'kind', p_part ->> 'name') end <@ v_needs)
  then
    raise exception 'it would use a different object than before' using errcode = 'BT004';
  end if;
  if p_part ->> 'kind' = 'constraint' then
    insert into {{swap}}._references_to_check
    select k.conrelid, k.conname from pg_constraint as k
    where k.conname = p_part ->> 'name' and not k.convalidated and p_table in (k.conrelid, k.confrelid) on conflict do nothing;
  end if;
end $make_part$;

-- drop_policies(table, name): drops all policies, because one of them is missing and the others might show too much: all
-- rows are then hidden.
create or replace function {{swap}}.drop_policies(p_table oid, p_name text) returns void language plpgsql as $drop_policies$
declare
  one record;
begin
  for one in
    select p.label, p.taken, {{swap}}.part_text(to_jsonb(p.*)) as shown
    from {{swap}}.column_parts(p_table, '{}', true) as p where p.kind = 'policy'
  loop
    execute one.taken;
    perform {{swap}}.report_lost(p_name, one.label, one.shown,
      'no longer on the table since its last change: another policy of the table cannot be created again');
  end loop;
end $drop_policies$;

-- is_transient(state): locks, lost connections, full disks: the whole change is tried again later.
create or replace function {{swap}}.is_transient(p_state text) returns boolean language sql immutable as $is_passing$
  select left(p_state, 2) in ('40', '53', '57', '58') or p_state = '55P03'
$is_passing$;

-- attempt(statement): runs it. Returns its error, for people; null if it has worked.
create or replace function {{swap}}.attempt(p_statement text) returns text language plpgsql as $attempt$
begin
  execute p_statement;
  return null;
exception when others then
  if {{swap}}.is_transient(sqlstate) then
    raise;
  end if;
  return sqlerrm;
end $attempt$;

-- report_lost(table, label, statement, reason): reports it in _sync_issues.
create or replace function {{swap}}.report_lost(p_name text, p_label text, p_statement text, p_reason text) returns void
language sql as $report_lost$
  insert into {{swap}}._sync_issues (table_name, record_id, field, value, reason)
  values (p_name, '', p_label, p_statement, p_reason)
  on conflict (table_name, record_id, field) do update
    set value = excluded.value, reason = excluded.reason, seen_at = excluded.seen_at
$report_lost$;

-- kept_columns(table): old columns that something needs, of this table or of all.
create or replace function {{swap}}.kept_columns(p_table oid default null) returns table (
  relation oid, table_name text, attnum smallint, name name
) language sql stable as $kept_columns$
  select a.attrelid, t.name, a.attnum, a.attname
  from {{swap}}._tables as t join pg_attribute as a on a.attrelid = {{swap}}.live_table(t.name)
  where a.attnum > 0 and not a.attisdropped and a.attname ~ '^_kept_[0-9]+$' and a.attrelid = coalesce(p_table, a.attrelid)
$kept_columns$;

-- drop_kept_columns(table): drops those that nothing needs, and reports the objects that need the others.
create or replace function {{swap}}.drop_kept_columns(p_table oid, p_parts jsonb default '[]') returns void
language plpgsql as $drop_kept_columns$
declare
  one record;
begin
  for one in select * from {{swap}}.kept_columns(p_table) loop
    begin
      execute format('alter table %s drop column %I', p_table::regclass, one.name);
    exception when dependent_objects_still_exist then
      -- It gets no values any longer.
      execute format('alter table %s alter column %I drop not null', p_table::regclass, one.name);
      perform {{swap}}.report_lost(d.description, '', coalesce(p.value ->> 'taken' || e';\n', '') || {{swap}}.part_text(p.value),
        format('it still uses a column of %s as it was before the last change (%I): drop it and create it again',
          {{swap}}.shown_name(one.table_name), one.name))
      from (
        select x.objid, pg_describe_object(x.classid, x.objid, x.objsubid) as description
        from pg_depend as x
        where x.refclassid = 'pg_class'::regclass and x.refobjid = p_table and x.refobjsubid = one.attnum
          and x.classid <> 'pg_rewrite'::regclass) as d
        join jsonb_array_elements(p_parts) as p on (p.value ->> 'object')::oid = d.objid;
    end;
  end loop;
end $drop_kept_columns$;

-- forget_carried(): deletes issues whose cause is gone: the lost object is on the table again, or nothing needs an old
-- column any longer, which is dropped. Runs once per lease.
create or replace function {{swap}}.forget_carried() returns void
language plpgsql set lock_timeout = '2s' as $forget_carried$
declare
  one record;
begin
  delete from {{swap}}._sync_issues as i using {{swap}}._tables as t
  where i.record_id = '' and i.field <> '' and i.table_name = t.name
    and i.reason like 'no longer on the table since its last change: %' and i.field in (
      select p.label from {{swap}}.column_parts({{swap}}.live_table(t.name), array(
        select a.attnum from pg_attribute as a
        where a.attrelid = {{swap}}.live_table(t.name) and a.attnum > 0 and not a.attisdropped)) as p);
  delete from {{swap}}._sync_issues as i
  where i.record_id = '' and i.field = '' and starts_with(i.value, 'alter table') and strpos(i.value, ' validate constraint ') > 0 and not exists (
    select from pg_constraint as k
    where not k.convalidated and i.table_name = pg_describe_object('pg_constraint'::regclass, k.oid, 0));
  for one in
    select k.relation, k.table_name from {{swap}}.kept_columns() as k
    where not exists (
      select from pg_depend as d
      where d.refclassid = 'pg_class'::regclass and d.refobjid = k.relation and d.refobjsubid = k.attnum)
  loop
    begin
      perform {{swap}}.lock_relations(array[one.table_name], {{swap}}.soon());
      perform {{swap}}.drop_kept_columns(one.relation);
      perform {{swap}}.may_change('{}');
    -- Others hold it, an event trigger refuses that, or the table is another role's by now: it is left for the next time.
    exception when others then null;
    end;
  end loop;
  delete from {{swap}}._sync_issues as i
  where i.record_id = '' and i.field = '' and i.reason like 'it still uses a column of %' and not exists (
    select from {{swap}}.kept_columns() as k
      join pg_depend as d on d.refclassid = 'pg_class'::regclass and d.refobjid = k.relation and d.refobjsubid = k.attnum
    where i.table_name = pg_describe_object(d.classid, d.objid, d.objsubid));
  perform {{swap}}.drop_kept();
end $forget_carried$;

-- reference_checked(relation, name, error): a constraint has been validated, or existing rows violate it (error).
create or replace function {{swap}}.reference_checked(p_relation oid, p_name name, p_error text) returns void
language plpgsql as $reference_checked$
begin
  delete from {{swap}}._references_to_check as r where (r.relation, r.name) = (p_relation, p_name);
  perform {{swap}}.report_lost(pg_describe_object('pg_constraint'::regclass, k.oid, 0), '',
    format('alter table %s validate constraint %I', p_relation::regclass, p_name),
    'is enforced only for new rows since the last change of its table: ' || p_error)
  from pg_constraint as k where p_error is not null and k.conrelid = p_relation and k.conname = p_name;
end $reference_checked$;
