-- Locks down the database that replicas are copied from. Run there by a superuser; idempotent.
--
-- Only the owner of the system catalogs may do this, which the admin of a cluster is not: copying a locked-down
-- database needs no such rights.
--
-- {{role}} is the cluster's admin, as a quoted identifier; {{forbidden}} a regular expression of function names.

-- Without PL/pgSQL no role can loop: a `do` block with `commit` in it uses up millions of transaction ids in seconds.
-- The admin may grant it to the own role of a writable database. SQL users may write there, and create no functions:
-- another role's statement would run one by its name, with that role's rights.
revoke usage on language plpgsql, sql from public;
grant usage on language plpgsql, sql to {{role}} with grant option;

do $$
declare
  signature regprocedure;
begin
  for signature in
    select p.oid from pg_proc as p
    where p.pronamespace = 'pg_catalog'::regnamespace and p.proname ~ '{{forbidden}}'
  loop
    execute format('revoke execute on function %s from public', signature);
    execute format('grant execute on function %s to {{role}}', signature);
  end loop;
  -- On a server that was upgraded from version 14, every role may create objects there.
  if to_regnamespace('public') is not null then
    revoke create on schema public from public;
  end if;
end $$;
