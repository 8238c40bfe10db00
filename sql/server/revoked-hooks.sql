-- Returns what runs the code of the role {{role}} when other roles use their tables and types, with the statement that
-- removes it. Data stay: a generated column keeps its values.
with code as (
  select 'pg_proc'::regclass as classid, p.oid from pg_proc as p
  where p.proowner = to_regrole(quote_ident({{role}}))
  union all
  select 'pg_operator'::regclass, o.oid from pg_operator as o
  where o.oprowner = to_regrole(quote_ident({{role}}))),
uses as (
  select distinct d.classid, d.objid from pg_depend as d join code as c on (d.refclassid, d.refobjid) = (c.classid, c.oid)),
hooks as (
  -- An index that belongs to a constraint goes with it.
  select 1 as rank, u.classid, u.objid,
    coalesce('alter table ' || n.conrelid::regclass || ' drop constraint ' || quote_ident(n.conname),
      'drop index ' || u.objid::regclass) as statement
  from uses as u join pg_class as i on i.oid = u.objid left join pg_constraint as n on n.conindid = i.oid and n.contype = 'x'
  where u.classid = 'pg_class'::regclass and i.relkind in ('i', 'I')
  union all
  select 2, u.classid, u.objid, format('alter table %s alter column %I drop %s', a.attrelid::regclass, a.attname,
    case when a.attgenerated = '' then 'default' else 'expression' end)
  from uses as u join pg_attrdef as e on e.oid = u.objid
    join pg_attribute as a on (a.attrelid, a.attnum) = (e.adrelid, e.adnum)
  where u.classid = 'pg_attrdef'::regclass
  union all
  select 3, u.classid, u.objid, case n.conrelid
    when 0 then format('alter domain %s drop constraint %I', n.contypid::regtype, n.conname)
    else format('alter table %s drop constraint if exists %I', n.conrelid::regclass, n.conname) end
  from uses as u join pg_constraint as n on n.oid = u.objid where u.classid = 'pg_constraint'::regclass
  union all
  select 4, u.classid, u.objid, format('drop rule %I on %s', r.rulename, r.ev_class::regclass)
  from uses as u join pg_rewrite as r on r.oid = u.objid
  where u.classid = 'pg_rewrite'::regclass and r.rulename <> '_RETURN'
  union all
  select 5, u.classid, u.objid, format('drop trigger %I on %s', t.tgname, t.tgrelid::regclass)
  from uses as u join pg_trigger as t on t.oid = u.objid where u.classid = 'pg_trigger'::regclass and t.tgparentid = 0
  union all
  select 6, u.classid, u.objid, format('drop statistics %s.%I', s.stxnamespace::regnamespace, s.stxname)
  from uses as u join pg_statistic_ext as s on s.oid = u.objid where u.classid = 'pg_statistic_ext'::regclass)
select pg_describe_object(classid, objid, 0) as what, min(statement) as statement
from hooks group by rank, classid, objid order by rank, 1
