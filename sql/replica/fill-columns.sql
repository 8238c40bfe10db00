-- Fills new columns of a live table, a few rows at a time, before a built table is merged into it: each value is
-- written to a column with a name of ours, which the merge renames. Installed with install.sql.

-- stale_fillings(live, table): columns being filled for fields that the table no longer gets.
create or replace function {{swap}}.stale_fillings(p_live {{swap}}._tables, p_table jsonb) returns name[]
language sql as $stale_fillings$
  select array(
    select a.attname from pg_attribute as a
    where a.attrelid = to_regclass(format('{{schema}}.%I', p_live.name)) and not a.attisdropped
      and a.attname ~ '^_filling_[0-9a-f]{16}$'
      and a.attname not in (select c.filling from {{swap}}.merge_columns(p_live, p_table) as c where c.is_filling and c.was is null))
$stale_fillings$;

-- start_fill(…): adds the columns to the live table that the values of new ones are written to. Parameters as for
-- merge_in.
drop function if exists {{swap}}.start_fill(bigint, text, integer, jsonb);
create or replace function {{swap}}.start_fill(
  p_epoch bigint, p_timeout text, p_shape integer, p_table jsonb, p_settled text[]
) returns void
language plpgsql as $start_fill$
declare
  v_live {{swap}}._tables;
  one record;
begin
  perform {{swap}}.fence(p_epoch);
  v_live := {{swap}}.live_to_fill(p_table, p_shape);
  if not exists (select from {{swap}}.merge_columns(v_live, p_table) as c where c.was is null and not c.is_filling) then
    return;
  end if;
  perform {{swap}}.lock_relations(array[v_live.name], clock_timestamp() + {{swap}}.lock_patience(
    array[format('{{schema}}.%I', v_live.name)::regclass::oid], p_timeout::interval));
  for one in select * from {{swap}}.merge_columns(v_live, p_table) as c where c.was is null and not c.is_filling loop
    execute format('alter table {{schema}}.%I drop column if exists %I, add column %2$I %s', v_live.name, one.filling, one.type);
    execute format('comment on column {{schema}}.%I.%I is %L', v_live.name, one.filling,
      format('Basetide is filling this column. When it is full, it will be renamed to %s.', one.name));
  end loop;
  perform {{swap}}.may_change(p_settled);
end $start_fill$;

-- live_to_fill(table, shape): the catalog's row of the table, locked against other writers until the transaction ends.
create or replace function {{swap}}.live_to_fill(p_table jsonb, p_shape integer) returns {{swap}}._tables
language plpgsql as $live_to_fill$
declare
  v_live {{swap}}._tables;
begin
  perform {{swap}}.lock_table(p_table ->> 'table_id');
  select * into v_live from {{swap}}._tables as t where t.table_id = p_table ->> 'table_id';
  if v_live.shape is distinct from p_shape or not {{swap}}.can_merge(v_live, p_table) then
    raise exception 'table % now has another shape', v_live.name using errcode = 'BT002';
  end if;
  perform {{swap}}.own_table(v_live.name);
  return v_live;
end $live_to_fill$;

-- fill_some(…): writes the values of new columns for the next p_most rows after the id p_after. Returns the last id,
-- null when there are no more, and how many rows were written.
drop function if exists {{swap}}.fill_some(bigint, integer, text, jsonb, text, integer);
create or replace function {{swap}}.fill_some(
  p_epoch bigint, p_shape integer, p_built text, p_table jsonb, p_after text, p_most integer,
  out last text, out written integer
) language plpgsql as $fill_some$
declare
  v_live {{swap}}._tables;
begin
  perform {{swap}}.fence(p_epoch);
  v_live := {{swap}}.live_to_fill(p_table, p_shape);
  if exists (select from {{swap}}.merge_columns(v_live, p_table) as c where c.was is null and not c.is_filling) then
    raise exception 'table % no longer has columns to fill', v_live.name using errcode = 'BT002';
  end if;
  execute format('select max(n.id) from (select b.id from {{swap}}.%I as b where b.id > $1 order by b.id limit $2) as n', p_built)
    into last using p_after, p_most;
  execute (
    select format('update {{schema}}.%I as l set %s from {{swap}}.%I as b
      where b.id = l.id and b.id > $1 and b.id <= $2 and (%s)', v_live.name,
      string_agg(format('%I = b.%I', c.filling, c.name), ', '), p_built,
      string_agg(format('l.%I is distinct from b.%I', c.filling, c.name), ' or '))
    from {{swap}}.merge_columns(v_live, p_table) as c where c.was is null
  ) using p_after, last;
  get diagnostics written = row_count;
end $fill_some$;

-- forget_fillings(epoch): drops columns that an ended lease was filling. Columns of tables that others hold, or may
-- lock next, are left for the next time.
create or replace function {{swap}}.forget_fillings(p_epoch bigint) returns void
language plpgsql set plan_cache_mode = force_generic_plan as $forget_fillings$
declare
  v_timeout text := current_setting('lock_timeout');
  one record;
begin
  perform {{swap}}.fence(p_epoch);
  for one in
    select t.name, a.attname as filling from {{swap}}._tables as t
      join pg_attribute as a on a.attrelid = to_regclass(format('{{schema}}.%I', t.name)) and not a.attisdropped
        and a.attname ~ '^_filling_[0-9a-f]{16}$'
  loop
    begin
      perform {{swap}}.lock_relations(array[one.name], clock_timestamp() + interval '100 ms');
      execute format('alter table {{schema}}.%I drop column if exists %I', one.name, one.filling);
      perform {{swap}}.may_change('{}');
    exception when sqlstate 'BT007' or lock_not_available or deadlock_detected or dependent_objects_still_exist then null;
    end;
  end loop;
  perform set_config('lock_timeout', v_timeout, true);
end $forget_fillings$;
