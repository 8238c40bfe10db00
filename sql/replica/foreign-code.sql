-- Determines whose code the customer's views need. Installed with install.sql.
--
-- A literal of a type runs that type's checks when a view is parsed, and an index runs functions when it is created.
-- The customer cannot change what belongs to us or to a superuser (an extension's functions, for example); what belongs
-- to any other role is that role's code.

-- is_trusted(owner): returns whether it is our role or a superuser. False for an unknown owner.
create or replace function {{swap}}.is_trusted(p_owner oid) returns boolean language sql as $is_trusted$
  select exists (
    select from pg_roles as r where r.oid = p_owner and (r.rolsuper or r.rolname = current_user))
$is_trusted$;

-- has_safe_columns(relation): returns whether the types of all its columns are trusted. False for an unknown relation.
create or replace function {{swap}}.has_safe_columns(p_relation oid) returns boolean language sql as $safe_columns$
  select exists (select from pg_class as c where c.oid = p_relation) and not exists (
    select from pg_attribute as a join pg_type as t on t.oid = a.atttypid
    where a.attrelid = p_relation and a.attnum > 0 and not {{swap}}.is_trusted(t.typowner))
$safe_columns$;

-- is_safe(class, object): returns whether a text that names it may be parsed. Unknown kinds of objects are not safe.
create or replace function {{swap}}.is_safe(p_class oid, p_object oid) returns boolean language sql as $is_safe$
  select case p_class
    when 'pg_class'::regclass then {{swap}}.has_safe_columns(p_object)
    when 'pg_type'::regclass then exists (
      select from pg_type as t left join pg_type as e on e.oid = t.typelem
      where t.oid = p_object and ({{swap}}.is_trusted(t.typowner)
        or {{swap}}.has_safe_columns(coalesce(nullif(t.typrelid, 0), e.typrelid))))
    when 'pg_proc'::regclass then {{swap}}.is_trusted((select p.proowner from pg_proc as p where p.oid = p_object))
    when 'pg_operator'::regclass then {{swap}}.is_trusted((select o.oprowner from pg_operator as o where o.oid = p_object))
    when 'pg_opclass'::regclass then {{swap}}.is_trusted((select o.opcowner from pg_opclass as o where o.oid = p_object))
    when 'pg_opfamily'::regclass then {{swap}}.is_trusted((select o.opfowner from pg_opfamily as o where o.oid = p_object))
    -- These hold names and rules, no code.
    else p_class in ('pg_namespace'::regclass, 'pg_constraint'::regclass, 'pg_collation'::regclass,
      'pg_rewrite'::regclass, 'pg_am'::regclass, 'pg_extension'::regclass, 'pg_ts_config'::regclass)
  end
$is_safe$;

-- foreign_code(view): describes the code of others that the view, its indexes, rules and triggers need; null if there
-- is none. A trigger's function does not count: creating the trigger does not run it.
create or replace function {{swap}}.foreign_code(p_view oid) returns text language sql as $foreign_code$
  with part (classid, objid) as (
    select 'pg_class'::regclass::oid, p_view
    union all select 'pg_rewrite'::regclass, r.oid from pg_rewrite as r where r.ev_class = p_view
    union all select 'pg_class'::regclass, i.indexrelid from pg_index as i where i.indrelid = p_view
    union all select 'pg_trigger'::regclass, t.oid from pg_trigger as t where t.tgrelid = p_view
  )
  select string_agg(distinct pg_describe_object(d.refclassid, d.refobjid, 0), ', ')
  from part join pg_depend as d on (d.classid, d.objid) = (part.classid, part.objid)
  where not {{swap}}.is_safe(d.refclassid, d.refobjid)
    and not exists (
      select from pg_trigger as t
      where part.classid = 'pg_trigger'::regclass and t.oid = part.objid and t.tgfoid = d.refobjid)
$foreign_code$;
