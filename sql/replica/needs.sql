-- Determines what an object depends on. Installed with install.sql.
--
-- An object is created again from its text, and a name in that text may mean something else by then: another role may
-- have created a function that fits better. So an object counts as restored only if it depends on the same objects as
-- before, by their ids. It then runs the same code as before, with the same rights. Expressions that Postgres evaluates
-- while it creates the object (of an index, a constraint, a column) are checked before: probe_expression.

-- role_name(role): for SQL text; 0 is PUBLIC.
create or replace function {{swap}}.role_name(p_role oid) returns text language sql as $role_name$
  select case p_role when 0 then 'public' else quote_ident(pg_get_userbyid(p_role)) end
$role_name$;

-- parts_of(relations): these relations, and the objects that are part of them.
create or replace function {{swap}}.parts_of(p_relations oid[]) returns table (classid oid, objid oid)
language sql as $parts_of$
  select 'pg_class'::regclass::oid, r.oid from unnest(p_relations) as r (oid)
  union all select 'pg_type'::regclass, t.oid from pg_type as t where t.typrelid = any (p_relations)
  union all select 'pg_type'::regclass, t.typarray from pg_type as t where t.typrelid = any (p_relations)
  union all select 'pg_class'::regclass, i.indexrelid from pg_index as i where i.indrelid = any (p_relations)
  union all select 'pg_constraint'::regclass, k.oid from pg_constraint as k where k.conrelid = any (p_relations)
  union all select 'pg_trigger'::regclass, t.oid from pg_trigger as t where t.tgrelid = any (p_relations)
  union all select 'pg_policy'::regclass, p.oid from pg_policy as p where p.polrelid = any (p_relations)
  union all select 'pg_attrdef'::regclass, d.oid from pg_attrdef as d where d.adrelid = any (p_relations)
  union all select 'pg_statistic_ext'::regclass, s.oid from pg_statistic_ext as s where s.stxrelid = any (p_relations)
  union all select 'pg_publication_rel'::regclass, p.oid from pg_publication_rel as p where p.prrelid = any (p_relations)
  union all select 'pg_rewrite'::regclass, w.oid from pg_rewrite as w
    where w.ev_class = any (p_relations) and w.rulename <> '_RETURN'
$parts_of$;

-- needs_of(class, object, part, table): the objects that it depends on, except the table and its parts.
create or replace function {{swap}}.needs_of(p_class oid, p_object oid, p_part integer, p_table oid) returns text[]
language sql as $needs_of$
  select array(
    select distinct format('%s/%s', d.refclassid, d.refobjid)
    from pg_depend as d
    where (d.classid, d.objid, d.objsubid) = (p_class, p_object, p_part)
      -- Except the object that it is part of, and parts created for it.
      and d.deptype in ('n', 'a') and d.refclassid not in (
        'pg_namespace'::regclass, 'pg_publication'::regclass, 'pg_language'::regclass, 'pg_extension'::regclass)
      and (d.refclassid, d.refobjid) not in (select p.classid, p.objid from {{swap}}.parts_of(array[p_table]) as p)
    order by 1)
$needs_of$;

-- used_columns(class, object, table): the table's columns that the object depends on.
create or replace function {{swap}}.used_columns(p_class oid, p_object oid, p_table oid) returns name[]
language sql as $used_columns$
  select array(
    select distinct a.attname
    from pg_depend as d join pg_attribute as a on a.attrelid = p_table and a.attnum = d.refobjsubid
    where (d.classid, d.objid, d.refclassid, d.refobjid) = (p_class, p_object, 'pg_class'::regclass, p_table)
      and d.refobjsubid > 0)
$used_columns$;

-- object_of(table, kind, name): the catalog address of this object of the table; part is the number of a column.
create or replace function {{swap}}.object_of(p_table oid, p_kind text, p_name text)
returns table (class oid, object oid, part integer) language sql as $object_of$
  select 'pg_policy'::regclass::oid, p.oid, 0 from pg_policy as p
    where p_kind = 'policy' and p.polrelid = p_table and p.polname = p_name
  union all
  select 'pg_class'::regclass, c.oid, 0 from pg_index as i join pg_class as c on c.oid = i.indexrelid
    where p_kind = 'index' and i.indrelid = p_table and c.relname = p_name
  union all
  select 'pg_trigger'::regclass, t.oid, 0 from pg_trigger as t
    where p_kind = 'trigger' and t.tgrelid = p_table and t.tgname = p_name
  union all
  select 'pg_constraint'::regclass, k.oid, 0 from pg_constraint as k
    where p_kind = 'constraint' and k.conrelid = p_table and k.conname = p_name
  union all
  select 'pg_rewrite'::regclass, r.oid, 0 from pg_rewrite as r
    where p_kind = 'rule' and r.ev_class = p_table and r.rulename = p_name
  union all
  select 'pg_statistic_ext'::regclass, s.oid, 0 from pg_statistic_ext as s
    where p_kind = 'statistics' and s.stxrelid = p_table and s.stxname = p_name
  union all
  select 'pg_class'::regclass, p_table, a.attnum from pg_attribute as a
    where p_kind = 'column' and a.attrelid = p_table and a.attname = p_name
  union all
  select 'pg_attrdef'::regclass, d.oid, 0
    from pg_attrdef as d join pg_attribute as a on (a.attrelid, a.attnum) = (d.adrelid, d.adnum)
    where p_kind in ('column', 'default') and a.attrelid = p_table and a.attname = p_name
  union all
  select 'pg_publication_rel'::regclass, r.oid, 0
    from pg_publication_rel as r join pg_publication as p on p.oid = r.prpubid
    where p_kind = 'publication' and r.prrelid = p_table and p.pubname = p_name
$object_of$;

-- all_needs(table, kind, name): what this object of the table depends on.
create or replace function {{swap}}.all_needs(p_table oid, p_kind text, p_name text) returns text[]
language sql as $all_needs$
  select array(
    select distinct n.need
    from {{swap}}.object_of(p_table, p_kind, p_name) as o
      cross join unnest({{swap}}.needs_of(o.class, o.object, o.part, p_table)) as n (need)
    order by 1)
$all_needs$;

-- probe_expression(expression, table, needs): raises BT004 if the expression would use anything on this table other
-- than `needs`. The expression is parsed as that of a policy, and nothing in it runs.
create or replace function {{swap}}.probe_expression(p_expression text, p_target regclass, p_needs text[]) returns void
language plpgsql as $probe_expression$
begin
  -- It uses only the table and objects of Postgres, whose names come first in the search path.
  if p_expression is null or p_needs = '{}' then
    return;
  end if;
  execute format('create policy _probe on %s using (row(%s) is not null)', p_target, p_expression);
  if not {{swap}}.all_needs(p_target, 'policy', '_probe') <@ p_needs then
    raise exception 'its expression would use a different object than before' using errcode = 'BT004';
  end if;
  execute format('drop policy _probe on %s', p_target);
end $probe_expression$;
