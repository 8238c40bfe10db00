-- Runs the statements that create a customer's view, with the rights of the view's owner and in a sandbox. Installed
-- with install.sql.
--
-- The sandbox is Postgres' own: REFRESH MATERIALIZED VIEW runs a query as the materialized view's owner, in what Postgres
-- calls a security-restricted operation. Code in it cannot change its role, listen, or leave behind settings, temporary
-- tables, cursors or deferred triggers (which Postgres would run later, with our rights). A SECURITY DEFINER function
-- would allow all of these but the first.

-- run_statements(views): runs each view's statements, all or none; returns one row for each view that failed. Runs in
-- the sandbox, as a role that may read nothing of ours, so it uses no names of {{swap}}.
create or replace function {{swap}}.run_statements(p_views jsonb) returns table (nth integer, error text)
language plpgsql as $run_statements$
declare
  one record;
  grantee text;
  statement text;
begin
  for one in
    select v.value as view, v.ordinality::integer as place from jsonb_array_elements(p_views) with ordinality as v
  loop
    begin
      execute one.view #>> '{statements,0}';
      -- The view did not have the grants that default privileges have just added.
      for grantee in
        select distinct case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end
        from pg_class as c, aclexplode(c.relacl) as a where c.oid = (one.view ->> 'name')::regclass
      loop
        execute format('revoke all on %s from %s', one.view ->> 'name', grantee);
      end loop;
      for statement in
        select s.value from jsonb_array_elements_text(one.view -> 'statements') with ordinality as s
        where s.ordinality > 1 order by s.ordinality
      loop
        execute statement;
      end loop;
    exception when others then
      -- Same states as in is_transient, which the sandbox may not call.
      if left(sqlstate, 2) in ('40', '53', '57', '58') or sqlstate = '55P03' then
        raise;
      end if;
      nth := one.place;
      error := sqlerrm;
      return next;
    end;
  end loop;
end $run_statements$;
-- The owner of the sandbox calls it; other roles cannot reach the schema.
grant execute on function {{swap}}.run_statements(jsonb) to public;

-- view_statements(saved, definition): the statements that restore the view.
create or replace function {{swap}}.view_statements(p_saved jsonb, p_definition text) returns text[]
language plpgsql as $view_statements$
declare
  v_name text := format('%I.%I', p_saved ->> 'schema', p_saved ->> 'name');
  is_materialized boolean := p_saved ->> 'kind' = 'm';
  v_kind text := case when is_materialized then 'materialized view' else 'view' end;
begin
  return array[format('create %s %s %s as %s %s', v_kind, v_name,
      case when p_saved ->> 'options' = '' then '' else format('with (%s)', p_saved ->> 'options') end,
      rtrim(p_definition, '; '), case when is_materialized then 'with no data' else '' end)]
    || array(select format('comment on %s %s is %L', v_kind, v_name, p_saved ->> 'comment')
      where p_saved ->> 'comment' is not null)
    || array(select format('comment on column %s.%I is %L', v_name, c.key, c.value)
      from jsonb_each_text(p_saved -> 'column_comments') as c)
    || array(select format('grant %s on %s to %s %s', g.privilege, v_name, g."to",
        case when g.grantable then 'with grant option' else '' end)
      from jsonb_to_recordset(p_saved -> 'grants') as g ("to" text, privilege text, grantable boolean))
    || array(select jsonb_array_elements_text(p_saved -> 'statements'));
end $view_statements$;

-- remake(views): creates views of one owner, in this order, from their current definitions. Returns an error, or null,
-- for each. We have all rights of the owner.
create or replace function {{swap}}.remake(p_views jsonb[]) returns text[] language plpgsql as $remake$
declare
  v_owner text := p_views[1] ->> 'owner';
  v_granted text[] := {{swap}}.lend_create(v_owner, array(select distinct v ->> 'schema' from unnest(p_views) as v));
  v_errors text[];
  v_view oid;
  one text;
begin
  execute format('create materialized view {{swap}}._sandbox as select * from {{swap}}.run_statements(%L) with no data',
    (select jsonb_agg(jsonb_build_object(
        'name', format('%I.%I', v ->> 'schema', v ->> 'name'),
        'statements', {{swap}}.view_statements(v, v ->> 'now')) order by nth)
      from unnest(p_views) with ordinality as u (v, nth)));
  -- If the view belongs to our own role, a revoke afterwards would take the right from ourselves for good.
  if v_owner <> current_user then
    execute format('grant create on schema {{swap}} to %I', v_owner);
    execute format('alter materialized view {{swap}}._sandbox owner to %I', v_owner);
    execute format('revoke create on schema {{swap}} from %I', v_owner);
  end if;
  refresh materialized view {{swap}}._sandbox;
  execute 'select array(select s.error from generate_series(1, $1) as n left join {{swap}}._sandbox as s on s.nth = n
    order by n)' into v_errors using cardinality(p_views);
  drop materialized view {{swap}}._sandbox;
  foreach one in array v_granted loop
    execute format('revoke create on schema %I from %I', one, v_owner);
  end loop;
  for nth in 1 .. cardinality(p_views) loop
    continue when v_errors[nth] is not null;
    v_view := format('%I.%I', p_views[nth] ->> 'schema', p_views[nth] ->> 'name')::regclass;
    -- The names in the text may mean something else since it was saved.
    if {{swap}}.foreign_code(v_view) is not null then
      raise exception '% uses %', v_view::regclass, {{swap}}.foreign_code(v_view) using errcode = 'BT004';
    end if;
    if p_views[nth] ->> 'kind' = 'm' then
      insert into {{swap}}._views_to_refresh values (p_views[nth] ->> 'schema', p_views[nth] ->> 'name')
      on conflict do nothing;
    end if;
  end loop;
  return v_errors;
exception when sqlstate 'BT004' then
  return array(select sqlerrm from unnest(p_views));
end $remake$;

-- lend_create(role, schemas): lets the role create in those of these schemas where it no longer may, and returns them.
-- The caller revokes that in the same transaction. If we may not grant it, creating the view fails with an error of
-- Postgres.
create or replace function {{swap}}.lend_create(p_role text, p_schemas text[]) returns text[]
language plpgsql as $lend_create$
declare
  one text;
  granted text[] := '{}';
begin
  foreach one in array p_schemas loop
    continue when to_regnamespace(quote_ident(one)) is null or has_schema_privilege(p_role, one, 'create');
    begin
      execute format('grant create on schema %I to %I', one, p_role);
      granted := granted || one;
    exception when insufficient_privilege then null;
    end;
  end loop;
  return granted;
end $lend_create$;
