-- Sends subscribers of publications the changes of a swap. Installed with install.sql.
--
-- The rows of a new table were written before it was in any publication, so Postgres sends none of them. A subscriber has
-- the rows of the old table under the same name. It is sent the differences as ordinary changes in the transaction of
-- the swap: deleted rows are deleted from the old table; the others are written once more to the new one.

-- publication_changes(live, built, table): rows that must be sent to subscribers of the live table; null if it is in no
-- publication. is_too_many: there are more than p_most, and they are not listed.
create or replace function {{swap}}.publication_changes(
  p_live {{swap}}._tables, p_built text, p_table jsonb, p_most integer default 50000
) returns jsonb language plpgsql as $publication_changes$
declare
  v_differs text;
  v_new text[];
  v_changed text[];
  v_gone text[];
begin
  if p_live.name is null or not exists (
    select from pg_publication_tables as p
    where format('%I', p.schemaname)::regnamespace = '{{schema}}'::regnamespace and p.tablename = p_live.name
  ) then
    return null;
  end if;
  select string_agg(case when o.name is null then format('n.%I is not null', c.name)
      else format('n.%I is distinct from l.%I', c.name, o.name) end, ' or ')
  into v_differs
  from jsonb_to_recordset(p_table #> '{spec,columns}') as c ("fieldId" text, name text, "columnType" text)
    left join jsonb_to_recordset(p_live.spec -> 'columns') as o ("fieldId" text, name text, "columnType" text)
      using ("fieldId", "columnType");
  execute format(
    'select array_agg(x.id) filter (where x.is_new), array_agg(x.id) filter (where not x.is_new and not x.is_gone),
       array_agg(x.id) filter (where x.is_gone)
     from (
       select coalesce(n.id, l.id) as id, l.id is null as is_new, n.id is null as is_gone
       from only {{schema}}.%I as l full join {{swap}}.%I as n on n.id = l.id
       where l.id is null or n.id is null or n.created_time is distinct from l.created_time or %s limit %s
     ) as x', p_live.name, p_built, coalesce(v_differs, 'false'), p_most + 1) into v_new, v_changed, v_gone;
  if coalesce(cardinality(v_new), 0) + coalesce(cardinality(v_changed), 0) + coalesce(cardinality(v_gone), 0) > p_most then
    return '{"is_too_many": true}';
  end if;
  return jsonb_build_object('new', coalesce(v_new, '{}'), 'changed', coalesce(v_changed, '{}'), 'gone', coalesce(v_gone, '{}'));
end $publication_changes$;

-- publish_deletes(changes, name): deletes them from the live table, as if the records were deleted one by one.
create or replace function {{swap}}.publish_deletes(p_changes jsonb, p_name text) returns void
language plpgsql as $publish_deletes$
begin
  if p_changes -> 'gone' <> '[]' then
    execute format('delete from only {{schema}}.%I where id = any ($1)', p_name)
      using array(select jsonb_array_elements_text(p_changes -> 'gone'));
  end if;
exception when others then
  if {{swap}}.is_transient(sqlstate) then
    raise;
  end if;
  perform {{swap}}.report_unsent(p_name, 'deleted rows could not be sent: ' || sqlerrm);
end $publish_deletes$;

-- publish_rows(changes, name): writes rows of the table that has this name now, before others' objects could see it.
create or replace function {{swap}}.publish_rows(p_changes jsonb, p_name text) returns void
language plpgsql as $publish_rows$
declare
  v_columns text := (
    select string_agg(quote_ident(a.attname), ', ') from pg_attribute as a
    where a.attrelid = format('{{schema}}.%I', p_name)::regclass and a.attnum > 0 and not a.attisdropped
      and a.attgenerated = '');
begin
  if p_changes is null then
    return;
  end if;
  if p_changes ? 'is_too_many' then
    perform {{swap}}.report_unsent(p_name, 'more rows changed than Basetide sends at once');
    return;
  end if;
  if p_changes -> 'changed' <> '[]' then
    execute format('update {{schema}}.%I set id = id where id = any ($1)', p_name)
      using array(select jsonb_array_elements_text(p_changes -> 'changed'));
  end if;
  if p_changes -> 'new' <> '[]' then
    execute format(
      'with moved as (delete from {{schema}}.%1$I where id = any ($1) returning %2$s)
       insert into {{schema}}.%1$I (%2$s) overriding system value select %2$s from moved', p_name, v_columns)
      using array(select jsonb_array_elements_text(p_changes -> 'new'));
  end if;
exception when others then
  if {{swap}}.is_transient(sqlstate) then
    raise;
  end if;
  perform {{swap}}.report_unsent(p_name, sqlerrm);
end $publish_rows$;

-- report_unsent(name, reason): reports that subscribers' copies differ from the table.
create or replace function {{swap}}.report_unsent(p_name text, p_reason text) returns void language sql as $report_unsent$
  select {{swap}}.report_lost(p_name, 'rows at subscribers',
    format('-- on each subscriber:%1$struncate %2$s;%1$salter subscription … refresh publication with (copy_data = true);',
      e'\n', {{swap}}.shown_name(p_name)),
    'subscribers of the table''s publications have outdated rows. Copy the table to them again: ' || p_reason)
$report_unsent$;
