-- Returns the statements after which the functions of the role {{role}} no longer run, in any session and however
-- they are reached, and after which no name of another role's statement finds them or its operators: they move to the
-- schema {{place}}.
select what, statement from (
  select 1 as rank, p.oid::regprocedure::text as what, format('create or replace %s %s.%I(%s)%s language plpgsql as %L',
    case p.prokind when 'p' then 'procedure' else 'function' end, p.pronamespace::regnamespace, p.proname,
    pg_get_function_arguments(p.oid), ' returns ' || case p.prokind when 'p' then null else pg_get_function_result(p.oid) end,
    'begin raise exception ''The SQL user that made this function was revoked'' using errcode = ''42501''; end') as statement
  from pg_proc as p
  where p.proowner = to_regrole(quote_ident({{role}})) and p.prokind in ('f', 'p')
  union all
  select 2, o.oid::regoperator::text, format('alter operator %s set schema %I', o.oid::regoperator, {{place}})
  from pg_operator as o
  where o.oprowner = to_regrole(quote_ident({{role}}))
  union all
  select 3, p.oid::regprocedure::text, format('alter routine %s set schema %I', p.oid::regprocedure, {{place}})
  from pg_proc as p
  where p.proowner = to_regrole(quote_ident({{role}}))
) as statements order by rank, 1
