-- The last part of the template: applies to everything above.

-- Every function of ours runs with this search path, whatever the caller's is: names that a statement does not qualify
-- are Postgres' own. Set here for all functions, so that none can be missed.
do $pins$
declare
  one regprocedure;
begin
  for one in select p.oid from pg_proc as p where p.pronamespace = '{{swap}}'::regnamespace loop
    execute format('alter function %s set search_path = pg_catalog, pg_temp', one);
  end loop;
end $pins$;
