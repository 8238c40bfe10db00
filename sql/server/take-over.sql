-- Gives {{role}} the current user's objects in this database, except those of Postgres or of an extension. For
-- databases that the service created as a superuser; `reassign owned` refuses the superuser of `initdb`.
do $$
declare
  statement text;
begin
  for statement in
    with mine as (
      select 'pg_namespace'::regclass as class, n.oid, 'schema' as kind, quote_ident(n.nspname) as name
      from pg_namespace as n
      where n.nspowner = current_user::regrole and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
      union all
      select 'pg_class'::regclass, c.oid, case c.relkind when 'v' then 'view' when 'm' then 'materialized view'
          when 'S' then 'sequence' when 'f' then 'foreign table' when 'c' then 'type' else 'table' end,
        format('%I.%I', n.nspname, c.relname)
      from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
      where c.relowner = current_user::regrole and c.relkind in ('r', 'p', 'v', 'm', 'S', 'f', 'c')
        and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
        -- A column's sequence changes owners with its table.
        and not exists (
          select from pg_depend as d
          where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype in ('a', 'i')
            and d.refclassid = 'pg_class'::regclass and c.relkind = 'S')
      union all
      select 'pg_proc'::regclass, p.oid, 'routine', p.oid::regprocedure::text
      from pg_proc as p join pg_namespace as n on n.oid = p.pronamespace
      where p.proowner = current_user::regrole and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
      union all
      select 'pg_type'::regclass, t.oid, 'type', format('%I.%I', n.nspname, t.typname)
      from pg_type as t join pg_namespace as n on n.oid = t.typnamespace
      where t.typowner = current_user::regrole and t.typtype in ('d', 'e', 'r')
        and n.nspname !~ '^pg_' and n.nspname <> 'information_schema')
    select format('alter %s %s owner to {{role}}', kind, name) from mine
    where not exists (
      select from pg_depend as d where d.classid = mine.class and d.objid = mine.oid and d.deptype = 'e')
  loop
    execute statement;
  end loop;
end $$;
