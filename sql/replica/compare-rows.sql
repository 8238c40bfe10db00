-- Compares the rows of a built table with the live one's, a few at a time, before they are merged: while they are
-- compared, no session waits. Installed with install.sql.

-- merge_state(live, table, common): the conditions of a comparison. If they have changed, rows are compared again.
create or replace function {{swap}}.merge_state(p_live {{swap}}._tables, p_table jsonb, p_common jsonb) returns jsonb
language sql as $merge_state$
  select jsonb_build_object('common', p_common,
    'columns', (select jsonb_agg(jsonb_build_array(c.name, c.was, c.is_filling) order by c.name)
      from {{swap}}.merge_columns(p_live, p_table) as c))
$merge_state$;

-- start_compare(epoch, shape, built, table): the conditions for comparing the rows of both tables; null if they cannot
-- be merged.
create or replace function {{swap}}.start_compare(p_epoch bigint, p_shape integer, p_built text, p_table jsonb)
returns jsonb language plpgsql as $start_compare$
declare
  v_live {{swap}}._tables;
  v_new text[];
begin
  perform {{swap}}.fence(p_epoch);
  select * into v_live from {{swap}}._tables as t where t.table_id = p_table ->> 'table_id' and t.shape = p_shape;
  if v_live.name is null or {{swap}}.merge_obstacle(v_live, p_table) is not null then
    return null;
  end if;
  v_new := array(select c.name from {{swap}}.merge_columns(v_live, p_table) as c where c.was is null);
  return {{swap}}.merge_state(v_live, p_table,
    {{swap}}.common_values(p_built, v_new, {{swap}}.is_published(v_live.name)));
end $start_compare$;

-- compare_some(...): ids of rows that differ, among the next p_most rows of both tables after the id p_after; and the last
-- id, null when there are no more. Blocks no session: rows that are written from now on are in the recent-writes log.
create or replace function {{swap}}.compare_some(
  p_epoch bigint, p_shape integer, p_built text, p_table jsonb, p_state jsonb, p_after text, p_most integer,
  out ids text[], out last text
) language plpgsql as $compare_some$
declare
  v_live {{swap}}._tables;
begin
  perform {{swap}}.fence(p_epoch);
  select * into v_live from {{swap}}._tables as t where t.table_id = p_table ->> 'table_id';
  if v_live.shape is distinct from p_shape
    or {{swap}}.merge_state(v_live, p_table, p_state -> 'common') <> p_state then
    raise exception 'table % now has another shape', v_live.name using errcode = 'BT002';
  end if;
  perform {{swap}}.own_table(v_live.name);
  -- One of them may have few rows where the other has very many.
  execute format('select max(n.id) from (
      (select b.id from {{swap}}.%I as b where b.id > $1 order by b.id limit $2)
      union all (select l.id from only {{schema}}.%I as l where l.id > $1 order by l.id limit $2)
      order by id limit $2) as n', p_built, v_live.name)
    into last using p_after, p_most;
  execute (
    select format(
      'select coalesce(array_agg(coalesce(b.id, l.id)), ''{}'')
       from (select * from {{swap}}.%I where id > $1 and id <= $2) as b
         full join (select * from only {{schema}}.%I where id > $1 and id <= $2) as l on l.id = b.id
       where l.id is null or b.id is null or row(%s) is distinct from row(%s)', p_built, v_live.name,
      string_agg(case when c.was is not null then format('l.%I', c.was) when c.is_filling then format('l.%I', c.filling)
        else format('%L::%s', p_state -> 'common' ->> c.name, c.type) end, ', '),
      string_agg(format('b.%I', c.name), ', '))
    from (
      select m.name, m.type, m.was, m.filling, m.is_filling from {{swap}}.merge_columns(v_live, p_table) as m
      union all select 'created_time', 'timestamp', 'created_time', null, false
    ) as c
  ) into ids using p_after, last;
end $compare_some$;
