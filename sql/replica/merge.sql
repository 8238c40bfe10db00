-- Merges a table that was built in {{swap}} into the live one, which stays, with everything that others have put on it.
-- Installed with install.sql.
--
-- Used for a table that only gains columns, or whose rows are compared with the source's. A new column appears together
-- with its values: the most frequent value is its default while it is added, which writes no row, and the rows with
-- another value are written in the same transaction. If there are many of those, the values are first written to a
-- column with a name of ours, a few rows at a time, which is then renamed.

-- merge_in(…): makes the live table equal to the built one, columns included. The caller drops the built one.
--   behind   the recent-writes log has an image for this table that the caller has not seen (p_seen): read it and call again
--   unlike   they cannot be merged; swap it in
--   large    more than p_most rows would have to be written while readers wait: fill first (start_fill)
--   merged
-- Nothing is done unless it is merged. Readers are locked out only if the columns change. BT002: the live table has
-- another shape than p_shape.
--   p_timeout     longest wait for all locks together
--   p_table       the new row of the catalog      p_renames  rename columns of the live table
--   p_statements  run once the table has its new columns
--   p_compared    the result of compare_some: {state, ids, since}, where since is the last applied_version of the
--                 recent-writes log before it; null: compare all rows here, while no other session can write the table
--   p_settled     sessions that read the catalog and had time to lock what they found; null: all of them
drop function if exists {{swap}}.merge_in(bigint, text, bigint, integer, text, jsonb, text[], text[], json, integer, jsonb);
create or replace function {{swap}}.merge_in(
  p_epoch bigint, p_timeout text, p_seen bigint, p_shape integer, p_built text, p_table jsonb, p_renames text[],
  p_statements text[], p_issues json, p_most integer, p_compared jsonb, p_settled text[],
  out merging text, out inserted integer, out updated integer, out deleted integer
) language plpgsql as $merge_in$
declare
  v_name text := p_table ->> 'name';
  v_live {{swap}}._tables;
  v_state {{swap}}._state;
  v_new text[];
  v_common jsonb;
  v_ids text[] := '{}';
  v_among text[];
  v_changed record;
  v_is_reshaped boolean;
begin
  perform {{swap}}.fence(p_epoch);
  perform set_config('lock_timeout', p_timeout, true);
  perform {{swap}}.lock_table(p_table ->> 'table_id');
  if exists (
    select from {{swap}}._recent_writes as j where j.table_id = p_table ->> 'table_id' and j.applied_version > p_seen
  ) then
    merging := 'behind';
    return;
  end if;
  select * into v_live from {{swap}}._tables as t where t.table_id = p_table ->> 'table_id';
  if v_live.shape is distinct from p_shape then
    raise exception 'table % has shape %, not %', v_name, v_live.shape, p_shape using errcode = 'BT002';
  end if;
  if not {{swap}}.can_merge(v_live, p_table) then
    merging := 'unlike';
    return;
  end if;
  select * into v_state from {{swap}}._state;
  v_new := array(select c.name from {{swap}}.merge_columns(v_live, p_table) as c where c.was is null);
  v_is_reshaped := cardinality(v_new) > 0 or cardinality(p_renames) > 0 or v_name <> v_live.name;
  if v_is_reshaped then
    perform {{swap}}.probe_table(v_live.name, p_timeout);
  end if;
  perform {{swap}}.own_table(v_live.name);

  -- Slow work comes before the locks that readers notice.
  v_common := p_compared #> '{state,common}';
  if v_state.recent_writes_floor <= (p_compared ->> 'since')::bigint
    and {{swap}}.merge_state(v_live, p_table, v_common) = p_compared -> 'state' then
    v_among := array(
      select jsonb_array_elements_text(p_compared -> 'ids')
      union select j.record_id from {{swap}}._recent_writes as j
        where j.table_id = p_table ->> 'table_id' and j.applied_version > (p_compared ->> 'since')::bigint);
  else
    v_common := {{swap}}.common_values(p_built, v_new, {{swap}}.is_published(v_live.name));
  end if;
  if cardinality(v_new) > 0 then
    v_ids := {{swap}}.ids_to_fill(v_live, p_built, p_table, v_common, v_among, p_most + 1);
    -- Subscribers would need the column that is filled first, under its temporary name.
    if cardinality(v_ids) > p_most and not {{swap}}.is_published(v_live.name) then
      merging := 'large';
      return;
    end if;
  end if;
  -- Data that was lost here is no change in the source.
  if v_state.history and not v_live.spec ? 'isDamaged' then
    perform {{swap}}.record_swap({{swap}}.as_it_is(v_live, p_table), p_built, p_table);
  end if;
  select * into v_changed from {{swap}}.merge_rows(v_live, p_built, p_table, v_among);
  inserted := cardinality(v_changed.inserted_ids);
  deleted := cardinality(v_changed.deleted_ids);
  updated := (select count(*) from (select unnest(v_changed.updated_ids)
    union (select unnest(v_ids) except select unnest(v_changed.inserted_ids))) as u);
  delete from {{swap}}._sync_issues where table_name in (v_live.name, v_name) and record_id <> '';
  update {{swap}}._sync_issues as i set table_name = v_name
  where i.table_name = v_live.name and v_name <> v_live.name and not exists (
    select from {{swap}}._sync_issues as o where (o.table_name, o.record_id, o.field) = (v_name, i.record_id, i.field));
  insert into {{swap}}._sync_issues (table_name, record_id, field, value, reason)
  select v_name, i.record_id, i.field, i.value, i.reason
  from json_to_recordset(p_issues) as i (record_id text, field text, value text, reason text);
  -- The customer's deferred triggers would block the change of columns.
  set constraints all immediate;

  perform {{swap}}.lock_for_links();
  if v_is_reshaped then
    perform {{swap}}.reshape(v_live, p_built, p_table, p_timeout, p_renames, p_statements, v_common, v_ids);
  else
    perform {{swap}}.set_catalog(jsonb_build_array(p_table));
    perform {{swap}}.run_all(p_statements);
  end if;
  -- Images requested before this lose.
  update {{swap}}._tables set columns_since = nextval('{{swap}}._versions') where table_id = p_table ->> 'table_id';
  if v_state.notify and v_is_reshaped then
    perform {{swap}}.notify_listeners(jsonb_build_object('table', v_name, 'rebuilt', true));
  elsif v_state.notify then
    perform {{swap}}.notify_changes(v_name,
      v_changed.deleted_ids || v_changed.updated_ids || v_changed.inserted_ids);
  end if;
  perform {{swap}}.may_change(p_settled) where v_is_reshaped;
  merging := 'merged';
end $merge_in$;

-- run_all(statements): runs them one by one.
create or replace function {{swap}}.run_all(p_statements text[]) returns void language plpgsql as $run_all$
declare
  one text;
begin
  foreach one in array p_statements loop
    execute one;
  end loop;
end $run_all$;

-- as_it_is(live, table): the catalog's row without the columns that somebody has dropped.
create or replace function {{swap}}.as_it_is(p_live {{swap}}._tables, p_table jsonb) returns {{swap}}._tables
language plpgsql as $as_it_is$
begin
  p_live.spec := jsonb_set(p_live.spec, '{columns}', (
    select coalesce(jsonb_agg(o.value), '[]') from jsonb_array_elements(p_live.spec -> 'columns') as o (value)
    where o.value ->> 'name' in (select c.was from {{swap}}.merge_columns(p_live, p_table) as c)));
  return p_live;
end $as_it_is$;

-- ids_to_fill(…): at most p_most rows of the built table whose value in a new column differs from the column's default
-- or from what it has been filled with; among p_among unless that is null.
create or replace function {{swap}}.ids_to_fill(
  p_live {{swap}}._tables, p_built text, p_table jsonb, p_common jsonb, p_among text[], p_most integer
) returns text[] language plpgsql as $ids_to_fill$
declare
  found text[];
begin
  execute (
    select format('select coalesce(array_agg(f.id), ''{}'') from (select b.id from {{swap}}.%I as b %s where %s (%s) limit $1) as f',
      p_built,
      case when bool_or(c.is_filling) then format('left join {{schema}}.%I as l on l.id = b.id', p_live.name) else '' end,
      case when p_among is not null then 'b.id = any ($2) and' else '' end,
      -- Rows that the live table lacks are inserted with the filled values.
      string_agg(case when c.is_filling then format('l.id is not null and b.%I is distinct from l.%I', c.name, c.filling)
        else format('b.%I is distinct from %L::%s', c.name, p_common ->> c.name, c.type) end, ' or '))
    from {{swap}}.merge_columns(p_live, p_table) as c where c.was is null
  ) into found using p_most, p_among;
  return found;
end $ids_to_fill$;

-- merge_rows(…): copies the built table's values and rows to the live table's existing columns, among p_among unless
-- that is null. Returns the ids of the rows that differed.
drop function if exists {{swap}}.merge_rows({{swap}}._tables, text, jsonb, text[]);
create or replace function {{swap}}.merge_rows(
  p_live {{swap}}._tables, p_built text, p_table jsonb, p_among text[],
  out inserted_ids text[], out updated_ids text[], out deleted_ids text[]
) language plpgsql as $merge_rows$
declare
  v_among text := case when p_among is not null then ' and %s.id = any ($1)' else '' end;
  v_was text[];
  v_name text[];
  v_filling text[];
  v_filled text[];
begin
  select array_agg(quote_ident(c.was)), array_agg(quote_ident(c.name)) into v_was, v_name
  from {{swap}}.merge_columns(p_live, p_table) as c where c.was is not null;
  v_was := '{created_time}'::text[] || v_was;
  v_name := '{created_time}'::text[] || v_name;
  select array_agg(quote_ident(c.filling)), array_agg(quote_ident(c.name)) into v_filling, v_filled
  from {{swap}}.merge_columns(p_live, p_table) as c where c.was is null and c.is_filling;
  execute format(
    'with gone as (
       delete from {{schema}}.%I as l where not exists (select from {{swap}}.%I as b where b.id = l.id) %s returning l.id
     ) select coalesce(array_agg(id), ''{}'') from gone', p_live.name, p_built, format(v_among, 'l')
  ) into deleted_ids using p_among;
  execute (
    select format(
      'with updated as (
         update {{schema}}.%I as l set %s from {{swap}}.%I as b
         where b.id = l.id and row(%s) is distinct from row(%s) %s returning l.id
       ) select coalesce(array_agg(id), ''{}'') from updated', p_live.name,
      string_agg(format('%s = b.%s', u.was, u.name), ', '), p_built,
      string_agg('l.' || u.was, ', '), string_agg('b.' || u.name, ', '), format(v_among, 'l'))
    from unnest(v_was, v_name) as u (was, name)) into updated_ids using p_among;
  execute format(
    'with inserted as (
       insert into {{schema}}.%1$I (id, %2$s) select b.id, %3$s from {{swap}}.%4$I as b
       where not exists (select from {{schema}}.%1$I as l where l.id = b.id) %5$s returning id
     ) select coalesce(array_agg(id), ''{}'') from inserted', p_live.name, array_to_string(v_was || v_filling, ', '),
    (select string_agg('b.' || n, ', ') from unnest(v_name || v_filled) as n), p_built, format(v_among, 'b')
  ) into inserted_ids using p_among;
end $merge_rows$;

-- reshape(…): gives the live table its new columns and names; readers wait from here to the end of the transaction.
--   p_common  the most frequent values of the new columns      p_ids  the rows with other values
create or replace function {{swap}}.reshape(
  p_live {{swap}}._tables, p_built text, p_table jsonb, p_timeout text, p_renames text[], p_statements text[],
  p_common jsonb, p_ids text[]
) returns void language plpgsql as $reshape$
declare
  v_table text := format('{{schema}}.%I', p_table ->> 'name');
  v_columns jsonb := (select jsonb_agg(to_jsonb(c.*)) from {{swap}}.merge_columns(p_live, p_table) as c where c.was is null);
  v_stale name[] := {{swap}}.stale_fillings(p_live, p_table);
  v_going oid[];
  v_changing oid[];
  v_deadline timestamptz;
  v_views jsonb[];
  v_sets text;
  v_relations jsonb := {{swap}}.relations_of(array[p_table ->> 'table_id']);
  one record;
begin
  perform {{swap}}.set_catalog(jsonb_build_array(p_table));
  v_going := {{swap}}.going_link_views();
  v_changing := {{swap}}.changing_link_views();
  v_deadline := clock_timestamp() + {{swap}}.lock_patience(
    array[format('{{schema}}.%I', p_live.name)::regclass::oid], p_timeout::interval);
  v_views := {{swap}}.lock_views(v_going, v_deadline);
  perform {{swap}}.lock_link_views(v_changing, v_deadline);
  perform {{swap}}.lock_relations(array[p_live.name], v_deadline);
  perform {{swap}}.clear_aliases(v_relations);
  perform {{swap}}.run_all(p_renames);
  perform {{swap}}.rename_link_views();
  v_views := {{swap}}.drop_views(v_views);
  perform {{swap}}.drop_link_views();
  if p_live.name <> p_table ->> 'name' then
    execute format('alter table {{schema}}.%I rename to %I', p_live.name, p_table ->> 'name');
  end if;
  for one in select * from jsonb_to_recordset(v_columns) as c (name text, type text, filling text, is_filling boolean) loop
    if one.is_filling then
      execute format('alter table %s rename column %I to %I', v_table, one.filling, one.name);
    elsif p_common ->> one.name is null then
      execute format('alter table %s add column %I %s', v_table, one.name, one.type);
    else
      execute format('alter table %s add column %I %s default %L', v_table, one.name, one.type, p_common ->> one.name);
      execute format('alter table %s alter column %I drop default', v_table, one.name);
    end if;
  end loop;
  perform {{swap}}.run_all(array(select format('alter table %s drop column %I', v_table, s) from unnest(v_stale) as s));
  perform {{swap}}.run_all(p_statements);
  if cardinality(p_ids) > 0 then
    select string_agg(format('%1$I = b.%1$I', c.name), ', ') into v_sets from jsonb_to_recordset(v_columns) as c (name text);
    execute format('update {{schema}}.%I as l set %s from {{swap}}.%I as b where b.id = l.id and l.id = any ($1)',
      p_table ->> 'name', v_sets, p_built) using p_ids;
  end if;
  perform {{swap}}.make_link_views();
  perform {{swap}}.make_views(v_views);
  perform {{swap}}.adopt_orphans();
end $reshape$;
