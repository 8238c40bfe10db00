-- Tells which objects in {{schema}} are ours. The first part of the template: creates the schemas.
--
-- If others may create objects in the schema, or own it, a name does not show whose an object is. A statement of ours
-- that read or wrote somebody else's table would run their triggers, rules or functions with our rights. Our objects
-- have our role as their owner, so only our role could have put a trigger, a rule or a policy on them, or a role with
-- the right TRIGGER, which we grant to none.

do $schemas$
declare
  v_me oid := (select r.oid from pg_roles as r where r.rolname = current_user);
  v_swap text := {{swap_text}};
  v_other text;
begin
  if to_regnamespace('{{schema}}') is null then
    create schema {{schema}};
  end if;
  if to_regnamespace('{{swap}}') is null then
    create schema {{swap}};
  end if;
  select format('%s belongs to the role %I', f.what, pg_get_userbyid(f.owner)) into v_other
  from (
    select 1, format('The schema %I', v_swap), n.nspowner from pg_namespace as n where n.nspname = v_swap
    union all
    select 2, format('The relation %s', c.oid::regclass), c.relowner
    from pg_class as c where c.relnamespace = '{{swap}}'::regnamespace
    union all
    select 2, format('The function %s', p.oid::regprocedure), p.proowner
    from pg_proc as p where p.pronamespace = '{{swap}}'::regnamespace
  ) as f (place, what, owner)
  where f.owner <> v_me order by f.place limit 1;
  if v_other is not null then
    raise exception '%, and Basetide needs the schema % for its own use: drop or rename it', v_other, v_swap
      using errcode = 'BT003';
  end if;
  for v_other in
    select distinct case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end
    from pg_namespace as n, aclexplode(n.nspacl) as a
    where n.nspname = v_swap and a.grantee <> v_me
  loop
    execute format('revoke all on schema {{swap}} from %s', v_other);
  end loop;
end $schemas$;

-- our_role(): the role that owns all our objects.
create or replace function {{swap}}.our_role() returns oid language sql stable as $our_role$
  select r.oid from pg_catalog.pg_roles as r where r.rolname = current_user
$our_role$;

-- shown_name(name): the qualified name of a relation in {{schema}}, for people.
create or replace function {{swap}}.shown_name(p_name text) returns text language sql as $shown_name$
  select format('%I.%I', left({{swap_text}}, -length('_swap')), p_name)
$shown_name$;

-- own_kind(name): the kind of a relation of ours in {{schema}}, as in pg_class; null if there is none. BT003: the
-- relation is somebody else's.
create or replace function {{swap}}.own_kind(p_name text) returns "char" language plpgsql as $own_kind$
declare
  v_kind "char";
  v_owner name;
begin
  select c.relkind, r.rolname into v_kind, v_owner
  from pg_catalog.pg_class as c join pg_catalog.pg_roles as r on r.oid = c.relowner
  where c.relnamespace = '{{schema}}'::regnamespace and c.relname = p_name;
  if v_owner <> current_user then
    raise exception '% belongs to the role %, and Basetide needs this name: give it to the role %, or rename or drop it',
      {{swap}}.shown_name(p_name), v_owner, current_user using errcode = 'BT003';
  end if;
  return v_kind;
end $own_kind$;

-- own_table(name): raises BT003 unless the table is ours. No other table can take its place until the transaction ends.
-- Checks before the lock, which we may not be allowed to take on others' tables, and again after it.
create or replace function {{swap}}.own_table(p_name text) returns void language plpgsql as $own_table$
begin
  perform {{swap}}.own_kind(p_name);
  execute format('lock table {{schema}}.%I in access share mode', p_name);
  perform {{swap}}.own_kind(p_name);
end $own_table$;

-- bind_shown(name, columns): creates the view in {{swap}} of a table of {{schema}} if it is missing. False if there is
-- no such table. BT003: the existing one is not ours.
create or replace function {{swap}}.bind_shown(p_name text, p_columns name[]) returns boolean
language plpgsql as $bind_shown$
begin
  if to_regclass('{{swap}}.' || quote_ident(p_name)) is not null then
    return true;
  elsif {{swap}}.own_kind(p_name) is null then
    return false;
  end if;
  perform {{swap}}.own_table(p_name);
  if not p_columns <@ array(
    select a.attname from pg_attribute as a
    where a.attrelid = ('{{schema}}.' || quote_ident(p_name))::regclass and a.attnum > 0 and not a.attisdropped
  ) then
    raise exception '% was not created by Basetide, which needs this name: rename or drop it',
      {{swap}}.shown_name(p_name) using errcode = 'BT003';
  end if;
  execute format('create view {{swap}}.%1$I as table {{schema}}.%1$I', p_name);
  return true;
end $bind_shown$;

-- cut_name(name, bytes): the beginning of the name, as much as fits.
create or replace function {{swap}}.cut_name(p_name text, p_bytes integer) returns text
language plpgsql immutable as $cut$
begin
  if octet_length(p_name) <= p_bytes then
    return p_name;
  end if;
  while octet_length(p_name) > p_bytes loop
    p_name := left(p_name, -1);
  end loop;
  return rtrim(p_name, '_');
end $cut$;

-- unused_name(): a name that no object has in any schema, and that nobody can take in advance. No table of the source has
-- such a name: theirs never start with an underscore.
create or replace function {{swap}}.unused_name() returns text language sql volatile as $unused_name$
  select '_' || replace(gen_random_uuid()::text, '-', '')
$unused_name$;

-- move_relation(relation, schema, name): moves a table or view of ours to the other schema, where it gets this name.
-- Fails only if a relation or a type there has that name. The type of its arrays moves as well, and has the first 62
-- bytes of its name. If other objects in the other schema have one of these names, SET SCHEMA fails: then the relation moves
-- under an unused name, and gets its own there, for which RENAME gives such a type another name.
create or replace function {{swap}}.move_relation(p_relation oid, p_schema text, p_name text) returns void
language plpgsql as $move_relation$
declare
  v_kind text := (select case c.relkind when 'v' then 'view' else 'table' end from pg_class as c where c.oid = p_relation);
begin
  begin
    execute format('alter %s %s set schema %s', v_kind, p_relation::regclass, p_schema);
  exception when duplicate_table or duplicate_object or unique_violation then
    execute format('alter %s %s rename to %I', v_kind, p_relation::regclass, {{swap}}.unused_name());
    execute format('alter %s %s set schema %s', v_kind, p_relation::regclass, p_schema);
  end;
  if (select c.relname from pg_class as c where c.oid = p_relation) <> p_name then
    execute format('alter %s %s rename to %I', v_kind, p_relation::regclass, p_name);
  end if;
end $move_relation$;

-- parts_taken_along(table): the indexes of the table, and the sequences of its columns: they move with it.
create or replace function {{swap}}.parts_taken_along(p_table oid) returns table (part oid) language sql stable as $parts$
  select i.indexrelid from pg_index as i where i.indrelid = p_table
  union all
  select d.objid from pg_depend as d
  where d.classid = 'pg_class'::regclass and d.refclassid = 'pg_class'::regclass and d.refobjid = p_table
    and d.deptype in ('a', 'i') and (select c.relkind from pg_class as c where c.oid = d.objid) = 'S'
$parts$;

-- free_part_names(table): renames those of a table that leaves {{schema}}; of one that leaves {{swap}}, those whose names
-- are taken in {{schema}}.
create or replace function {{swap}}.free_part_names(p_table oid) returns void
language plpgsql as $free_part_names$
declare
  one record;
begin
  for one in
    select c.oid, c.relname as name, case c.relkind when 'S' then 'sequence' else 'index' end as kind
    from {{swap}}.parts_taken_along(p_table) as p
      -- Postgres would read all of pg_class for a join.
      cross join lateral (select * from pg_class as c where c.oid = p.part offset 0) as c
    where (select o.oid from pg_class as o where o.relnamespace = '{{schema}}'::regnamespace and o.relname = c.relname) is not null
  loop
    execute format('alter %s %s rename to %I', one.kind, one.oid::regclass,
      {{swap}}.cut_name(one.name, 29) || {{swap}}.unused_name());
  end loop;
end $free_part_names$;

-- show_relation(name): moves a relation from {{swap}} to {{schema}}, readable by the reader only.
create or replace function {{swap}}.show_relation(p_name text) returns void language plpgsql as $show_relation$
begin
  perform {{swap}}.reserve_for_reader(format('{{swap}}.%I', p_name)::regclass);
  perform {{swap}}.move_relation(format('{{swap}}.%I', p_name)::regclass, '{{schema}}', p_name);
end $show_relation$;

-- show_reserved(name): the same, for a name that only Basetide's own relation may have. BT003: it is taken, or the name of
-- an index or a sequence of the relation is.
create or replace function {{swap}}.show_reserved(p_name text) returns void language plpgsql as $show_reserved$
begin
  perform {{swap}}.show_relation(p_name);
exception when duplicate_table or duplicate_object or unique_violation then
  raise exception 'Basetide cannot create %: %; rename or drop it', {{swap}}.shown_name(p_name), sqlerrm
    using errcode = 'BT003';
end $show_reserved$;

-- show_table(name): moves a table from {{swap}} to {{schema}}, and leaves a view of it.
create or replace function {{swap}}.show_table(p_name text) returns void language plpgsql as $show_table$
begin
  perform {{swap}}.show_reserved(p_name);
  execute format('create view {{swap}}.%1$I as table {{schema}}.%1$I', p_name);
end $show_table$;

-- reserve_for_reader(relation): revokes what default privileges granted to others on a new relation and its sequences,
-- and lets the reader read it.
create or replace function {{swap}}.reserve_for_reader(p_relation regclass) returns void
language plpgsql as $reserve_for_reader$
declare
  v_reader text;
  one record;
begin
  for one in
    select distinct case c.relkind when 'S' then 'sequence ' else '' end || c.oid::regclass as relation,
      case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end as grantee
    from pg_class as c cross join aclexplode(c.relacl) as a
    where a.grantee <> c.relowner
      and (c.oid = p_relation or c.oid in (select p.part from {{swap}}.parts_taken_along(p_relation) as p))
  loop
    execute format('revoke all on %s from %s', one.relation, one.grantee);
  end loop;
  -- No reader is known before the first installation is complete; it grants at its end.
  if to_regclass('{{swap}}._state') is not null then
    select s.reader into v_reader from {{swap}}._state as s;
    if to_regrole(quote_ident(v_reader)) is not null then
      execute format('grant select on %s to %I', p_relation, v_reader);
    end if;
  end if;
end $reserve_for_reader$;
