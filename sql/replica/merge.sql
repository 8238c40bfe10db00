-- Merges a table that was built in {{swap}} into the live one, which stays, with everything that others have put on it.
-- Installed with install.sql.
--
-- Used for every change that needs the table's cells: new fields, fields of another type, and rows that are compared with
-- the source's. A new column appears together with its values: the most frequent value is its default while it is added,
-- which writes no row, and the rows with another value are written in the same transaction. If there are many of those,
-- the values are first written to a column with a name of ours, a few rows at a time, which is then renamed. The new
-- column of a field that got another type takes the old one's name in that transaction (column-parts.sql).

-- merge_in(...): makes the live table equal to the built one, columns included. The caller drops the built one.
--   behind   the recent-writes log has an image for this table that the caller has not seen (p_seen): read it and call again
--   unlike   they cannot be merged: `obstacle` says why, and the remedy
--   absent   there is no live table: move it in (shapes.sql)
--   large    more than p_most rows would have to be written while readers wait: fill first (start_fill)
--   merged
-- Nothing is done unless it is merged. Readers are locked out only if the columns change. BT002: the live table has
-- another shape than p_shape.
--   p_shape       null: the catalog does not have the table. One that was put aside, or that the catalog of a partly
--                 restored replica lacks, is merged all at once
--   p_table       the new row of the catalog
--   p_statements  run once the table has its new columns
--   p_compared    the result of compare_some: {state, ids, since}, where since is the last applied_version of the
--                 recent-writes log before it; null: compare all rows here, while no other session can write the table
--   p_settled     sessions that read the catalog and had time to lock what they found; null: all of them
create or replace function {{swap}}.merge_in(
  p_epoch bigint, p_seen bigint, p_shape integer, p_built text, p_table jsonb,
  p_statements text[], p_issues json, p_most integer, p_compared jsonb, p_settled text[],
  out merging text, out obstacle text, out inserted integer, out updated integer, out deleted integer
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
  v_is_late boolean;
  v_comments text[];
begin
  perform {{swap}}.fence(p_epoch);
  perform {{swap}}.wait_until({{swap}}.soon());
  v_live := {{swap}}.locked_row(p_table ->> 'table_id', p_shape);
  if {{swap}}.is_behind(p_table ->> 'table_id', p_seen) then
    merging := 'behind';
    return;
  end if;
  begin
    if p_shape is null then
      p_most := null;
      v_live := {{swap}}.take_back(p_table ->> 'table_id', v_name);
      if v_live.name is null then
        v_live := {{swap}}.leftover_row(p_table ->> 'table_id');
      end if;
    end if;
    if {{swap}}.live_table(v_live.name) is null then
      merging := 'absent';
      return;
    end if;
    obstacle := {{swap}}.merge_obstacle(v_live, p_table);
    if obstacle is not null then
      -- What was taken back goes back.
      raise exception '%', obstacle using errcode = 'BT005';
    end if;
  exception when sqlstate 'BT005' then
    merging := 'unlike';
    return;
  end;
  select * into v_state from {{swap}}._state;
  v_new := array(select c.name from {{swap}}.merge_columns(v_live, p_table) as c where c.was is null);
  v_is_reshaped := cardinality(v_new) > 0 or v_name <> v_live.name or p_shape is null
    or exists (select from {{swap}}.merge_columns(v_live, p_table) as c where c.had <> c.name)
    or exists (select from {{swap}}.going_columns(v_live, p_table))
    -- Lookups have arrays of ids, too, but no link view.
    or exists (
      select from jsonb_to_recordset(v_live.spec -> 'columns') as h ("fieldId" text, type text)
        join jsonb_to_recordset(p_table #> '{spec,columns}') as w ("fieldId" text, type text) using ("fieldId")
      where (h.type = 'links') <> (w.type = 'links'));
  if v_is_reshaped then
    perform {{swap}}.probe_table(v_live.name);
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
    if (cardinality(v_ids) > p_most or {{swap}}.lacks_twins(v_live, p_table, p_most))
      and ({{swap}}.may_hide(v_live.name) or not {{swap}}.is_published(v_live.name)) then
      merging := 'large';
      return;
    end if;
  end if;
  -- Data that was lost here is no change in the source.
  if v_state.history and p_shape is not null and not v_live.spec ? 'isDamaged' then
    perform {{swap}}.record_names(jsonb_build_array(p_table));
    perform {{swap}}.record_merge({{swap}}.as_it_is(v_live, p_table), p_built, p_table);
  end if;
  -- Subscribers get rows with the columns that the table has when they are written, and should not get those that go.
  v_is_late := coalesce(p_most is null or cardinality(v_among) <= p_most, false)
    and {{swap}}.is_published(v_live.name) and exists (select from {{swap}}.going_columns(v_live, p_table));
  if not v_is_late then
    select * into v_changed from {{swap}}.merge_rows(v_live, p_built, p_table, v_among);
  end if;
  perform {{swap}}.replace_issues(v_live.name, v_name, p_issues);
  -- The customer's deferred triggers would block the change of columns.
  set constraints all immediate;

  v_comments := {{swap}}.others_comments(array[v_live]);
  perform {{swap}}.lock_for_links();
  if v_is_reshaped then
    if v_is_late then
      select * into v_changed from {{swap}}.reshape(v_live, p_built, p_table, p_statements, v_common, null, v_among);
    else
      perform {{swap}}.reshape(v_live, p_built, p_table, p_statements, v_common, v_ids, null);
    end if;
  else
    perform {{swap}}.set_catalog(jsonb_build_array(p_table));
    perform {{swap}}.run_all(p_statements);
  end if;
  perform {{swap}}.run_all(v_comments);
  perform {{swap}}.make_apply(p_table ->> 'table_id');
  inserted := cardinality(v_changed.inserted_ids);
  deleted := cardinality(v_changed.deleted_ids);
  updated := (select count(*) from (select unnest(v_changed.updated_ids)
    union (select unnest(v_ids) except select unnest(v_changed.inserted_ids))) as u);
  -- Images requested before this lose.
  update {{swap}}._tables
  set columns_since = nextval('{{swap}}._versions'), file = {{swap}}.own_file(v_name)
  where table_id = p_table ->> 'table_id';
  if v_state.notify and not v_is_reshaped then
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

-- ids_to_fill(...): at most p_most rows of the built table whose value in a new column differs from the column's default
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
      case when bool_or(c.is_filling) then format('left join only {{schema}}.%I as l on l.id = b.id', p_live.name) else '' end,
      case when p_among is not null then 'b.id = any ($2) and' else '' end,
      -- Rows that the live table lacks are inserted with the filled values.
      string_agg(case when c.is_filling then format('l.id is not null and b.%I is distinct from l.%I', c.name, c.filling)
        else format('b.%I is distinct from %L::%s', c.name, p_common ->> c.name, c.type) end, ' or '))
    from {{swap}}.merge_columns(p_live, p_table) as c where c.was is null
  ) into found using p_most, p_among;
  return found;
end $ids_to_fill$;

-- merge_rows(...): copies the built table's values and rows to the live table's existing columns, among p_among unless
-- that is null. Returns the ids of the rows that differed.
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
  -- No statement writes in WITH: Postgres refuses that for a table with rules.
  execute format('select coalesce(array_agg(l.id), ''{}'') from only {{schema}}.%I as l where not exists (select from {{swap}}.%I as b where b.id = l.id) %s',
    p_live.name, p_built, format(v_among, 'l')) into deleted_ids using p_among;
  execute format('select coalesce(array_agg(l.id), ''{}'') from only {{schema}}.%I as l join {{swap}}.%I as b on b.id = l.id
    where row(%s) is distinct from row(%s) %s', p_live.name, p_built,
    (select string_agg('l.' || w, ', ') from unnest(v_was) as w), (select string_agg('b.' || n, ', ') from unnest(v_name) as n),
    format(v_among, 'l')) into updated_ids using p_among;
  execute format('select coalesce(array_agg(b.id), ''{}'') from {{swap}}.%I as b where not exists (select from only {{schema}}.%I as l where l.id = b.id) %s',
    p_built, p_live.name, format(v_among, 'b')) into inserted_ids using p_among;
  if deleted_ids <> '{}' then
    execute format('delete from only {{schema}}.%I where id = any ($1)', p_live.name) using deleted_ids;
  end if;
  if updated_ids <> '{}' then
    execute (
      select format('update only {{schema}}.%I as l set %s from {{swap}}.%I as b where b.id = l.id and l.id = any ($1)', p_live.name,
        string_agg(format('%s = b.%s', u.was, u.name), ', '), p_built)
      from unnest(v_was, v_name) as u (was, name)) using updated_ids;
  end if;
  if inserted_ids <> '{}' then
    execute format('insert into {{schema}}.%I (id, %s) select b.id, %s from {{swap}}.%I as b where b.id = any ($1)', p_live.name,
      array_to_string(v_was || v_filling, ', '), (select string_agg('b.' || n, ', ') from unnest(v_name || v_filled) as n), p_built)
      using inserted_ids;
  end if;
end $merge_rows$;

-- reshape(...): gives the live table its new columns and names; readers wait from here to the end of the transaction.
--   p_built   null if it only loses columns
--   p_common  the most frequent values of the new columns      p_ids  the rows with other values
--             null: merge_rows runs here, among p_among, and this returns its result
create or replace function {{swap}}.reshape(
  p_live {{swap}}._tables, p_built text, p_table jsonb, p_statements text[], p_common jsonb, p_ids text[],
  p_among text[], out inserted_ids text[], out updated_ids text[], out deleted_ids text[]
) language plpgsql as $reshape$
declare
  v_merged {{swap}}._tables;
  v_left text[];
  v_name text := p_table ->> 'name';
  v_table text := format('{{schema}}.%I', v_name);
  v_relation oid := {{swap}}.live_table(p_live.name);
  v_columns jsonb := (select coalesce(jsonb_agg(to_jsonb(c.*)), '[]') from {{swap}}.merge_columns(p_live, p_table) as c);
  v_stale name[] := {{swap}}.stale_fillings(p_live, p_table);
  v_going_columns smallint[] := array(select g.attnum from {{swap}}.going_columns(p_live, p_table) as g);
  v_lost_columns smallint[] := array(select g.attnum from {{swap}}.going_columns(p_live, p_table) as g where not g.is_retyped);
  v_uses smallint[] := v_going_columns || {{swap}}.generated_over(v_relation, v_going_columns);
  v_parts jsonb := '[]';
  v_deadline timestamptz;
  v_views jsonb[];
  v_sets text;
  one record;
begin
  perform {{swap}}.set_catalog(jsonb_build_array(p_table));
  select l.views, l.deadline into v_views, v_deadline
  from {{swap}}.lock_all('{}', array[p_live.name], v_relation, v_uses) as l;
  perform {{swap}}.show_columns(p_table ->> 'table_id', v_relation);
  perform {{swap}}.clear_aliases(jsonb_build_object(p_table ->> 'table_id', v_relation));
  perform {{swap}}.rename_columns(v_relation, v_columns);
  perform {{swap}}.rename_link_views();
  v_views := {{swap}}.drop_views(v_views);
  perform {{swap}}.drop_link_views();
  if p_live.name <> v_name then
    execute format('alter table {{schema}}.%I rename to %I', p_live.name, v_name);
  end if;
  if v_uses <> '{}' then
    perform {{swap}}.drop_aliases_over(v_relation, p_table ->> 'table_id', v_uses);
    select coalesce(jsonb_agg(to_jsonb(p.*)), '[]') into v_parts from {{swap}}.column_parts(v_relation, v_uses) as p;
    perform {{swap}}.run_all(array(
      select format('alter table %s rename column %I to %I', v_table, a.attname, '_kept_' || a.attnum)
      from pg_attribute as a where a.attrelid = v_relation and a.attnum = any (v_going_columns)));
  end if;
  for one in
    select * from jsonb_to_recordset(v_columns) as c (name text, type text, was text, filling text, is_filling boolean) where c.was is null
  loop
    if one.is_filling then
      execute format('alter table %s rename column %I to %I', v_table, one.filling, one.name);
    elsif p_common ->> one.name is null then
      execute format('alter table %s add column %I %s', v_table, one.name, one.type);
    else
      begin
        execute format('alter table %s add column %I %s default %L', v_table, one.name, one.type, p_common ->> one.name);
        execute format('alter table %s alter column %I drop default', v_table, one.name);
      exception when feature_not_supported then
        -- A column somewhere has the table's row type.
        execute format('alter table %s add column %I %s', v_table, one.name, one.type);
        execute format('update only %s set %I = %L', v_table, one.name, p_common ->> one.name);
      end;
    end if;
  end loop;
  perform {{swap}}.send_later(v_name, p_table ->> 'table_id', v_columns);
  perform {{swap}}.run_all(array(select format('alter table %s drop column %I', v_table, s) from unnest(v_stale) as s));
  perform {{swap}}.run_all(p_statements);
  if v_uses <> '{}' then
    v_left := {{swap}}.take_parts(v_relation, v_parts, v_deadline);
    perform {{swap}}.drop_kept_columns(v_relation, v_parts);
  end if;
  if p_ids is null then
    select * into v_merged from {{swap}}._tables as t where t.table_id = p_table ->> 'table_id';
    select * into inserted_ids, updated_ids, deleted_ids from {{swap}}.merge_rows(v_merged, p_built, p_table, p_among) as m
      (inserted_ids, updated_ids, deleted_ids);
    -- Deferred triggers would block what follows.
    set constraints all immediate;
  elsif cardinality(p_ids) > 0 then
    select string_agg(format('%1$I = b.%1$I', c.name), ', ') into v_sets
    from jsonb_to_recordset(v_columns) as c (name text, was text) where c.was is null;
    execute format('update only {{schema}}.%I as l set %s from {{swap}}.%I as b where b.id = l.id and l.id = any ($1)',
      v_name, v_sets, p_built) using p_ids;
  end if;
  if v_uses <> '{}' then
    perform {{swap}}.make_parts(v_relation, v_name, v_parts, v_lost_columns, v_left);
    perform {{swap}}.run_all(array(select format('drop index {{schema}}.%I', t.name) from {{swap}}.twins_of(v_relation) as t));
  end if;
  perform {{swap}}.make_again(v_views);
  perform {{swap}}.notify_rebuilt(v_name);
end $reshape$;

-- rename_columns(table, columns): renames the locked table's columns (merge_columns) in one step: every name that changes
-- goes through a temporary one, as does that of a column that is in the way and goes.
create or replace function {{swap}}.rename_columns(p_table oid, p_columns jsonb) returns void
language plpgsql as $rename_columns$
declare
  v_renames jsonb := (
    select coalesce(jsonb_agg(to_jsonb(c.*) || jsonb_build_object('by', {{swap}}.unused_name())), '[]')
    from jsonb_to_recordset(p_columns) as c (had text, name text) where c.had <> c.name);
begin
  perform {{swap}}.run_all(array(
    select format('alter table %s rename column %I to %I', p_table::regclass, a.attname,
      coalesce((select r.by from jsonb_to_recordset(v_renames) as r (had text, by text) where r.had = a.attname), {{swap}}.unused_name()))
    from pg_attribute as a where a.attrelid = p_table and a.attnum > 0 and not a.attisdropped
      and exists (select from jsonb_to_recordset(v_renames) as r (had text, name text) where a.attname in (r.had, r.name))));
  perform {{swap}}.run_all(array(
    select format('alter table %s rename column %I to %I', p_table::regclass, r.by, r.name)
    from jsonb_to_recordset(v_renames) as r (by text, name text)));
end $rename_columns$;
