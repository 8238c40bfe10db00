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

-- start_fill(...): adds the columns to the live table that the values of new ones are written to. Parameters as for
-- merge_in. Returns the input of index_fillings: what others' indexes on columns with another type so far are on the new
-- ones. Postgres describes them when the old columns have the names of the new ones for a moment.
create or replace function {{swap}}.start_fill(
  p_epoch bigint, p_shape integer, p_table jsonb, p_settled text[]
) returns jsonb
language plpgsql as $start_fill$
declare
  v_live {{swap}}._tables;
  v_relation oid;
  v_twins jsonb;
  one record;
begin
  perform {{swap}}.fence(p_epoch);
  v_live := {{swap}}.live_to_fill(p_table, p_shape);
  v_relation := {{swap}}.live_table(v_live.name);
  perform {{swap}}.lock_relations(array[v_live.name], {{swap}}.soon());
  if {{swap}}.is_published(v_live.name) then
    perform {{swap}}.hide_fillings(v_live);
  end if;
  for one in select * from {{swap}}.merge_columns(v_live, p_table) as c where c.was is null and not c.is_filling loop
    execute format('alter table {{schema}}.%I drop column if exists %I, add column %2$I %s', v_live.name, one.filling, one.type);
    execute format('comment on column {{schema}}.%I.%I is %L', v_live.name, one.filling,
      format('Basetide is filling this column. When it is full, it will be renamed to %s.', one.name));
  end loop;
  begin
    for one in select * from {{swap}}.merge_columns(v_live, p_table) as c where c.was is null and c.had is not null loop
      execute format('alter table {{schema}}.%I rename column %I to %I', v_live.name, one.filling, {{swap}}.unused_name());
      execute format('alter table {{schema}}.%I rename column %I to %I', v_live.name, one.had, one.filling);
    end loop;
    v_twins := (
      select jsonb_agg(jsonb_build_object('index', t.index, 'probe', pg_get_expr(i.indpred, v_relation),
        'keys', pg_get_expr(i.indexprs, v_relation), 'made', {{swap}}.text_after(pg_get_indexdef(t.index),
          format('CREATE %sINDEX %I ON ', case when i.indisunique then 'UNIQUE ' else '' end, t.name))))
      from {{swap}}.indexes_to_twin(v_live, p_table, v_relation) as t join pg_index as i on i.indexrelid = t.index);
    raise exception 'described' using errcode = 'BT005';
  exception when sqlstate 'BT005' then null;
  end;
  perform {{swap}}.may_change(p_settled);
  return coalesce(v_twins, '[]');
end $start_fill$;

-- indexes_to_twin(live, table, relation): others' indexes on columns that get another type, and on none that is deleted.
create or replace function {{swap}}.indexes_to_twin(p_live {{swap}}._tables, p_table jsonb, p_relation oid)
returns table (index oid, name name, twin text) language sql as $indexes_to_twin$
  with retyped as (
    select a.attnum from jsonb_to_recordset(p_live.spec -> 'columns') as o ("fieldId" text, name text)
      join jsonb_to_recordset(p_table #> '{spec,columns}') as n ("fieldId" text, "columnType" text) using ("fieldId")
      -- Under its own name, or that of the new column for a moment.
      join pg_attribute as a on a.attrelid = p_relation and not a.attisdropped
        and (a.attname in (o.name, {{swap}}.filling_name(o."fieldId"))) and a.atttypid <> n."columnType"::regtype
  )
  select distinct c.oid, c.relname, '_filling_' || c.oid
  from pg_index as i join pg_class as c on c.oid = i.indexrelid
    join pg_depend as d on (d.classid, d.objid) = ('pg_class'::regclass, c.oid) and d.refobjid = p_relation
  where i.indrelid = p_relation and i.indisvalid and d.refobjsubid in (select r.attnum from retyped as r)
    and not exists (select from pg_constraint as k where k.conindid = c.oid and k.conrelid = p_relation)
$indexes_to_twin$;

-- lacks_twins(live, table, most): returns whether the table has more rows than this, and an index that would have to be
-- created while readers wait, although that has not been tried before.
create or replace function {{swap}}.lacks_twins(p_live {{swap}}._tables, p_table jsonb, p_most integer) returns boolean
language plpgsql as $lacks_twins$
declare
  v_relation oid := {{swap}}.live_table(p_live.name);
  v_rows integer;
begin
  if p_most is null or not exists (select from {{swap}}.indexes_to_twin(p_live, p_table, v_relation))
    or exists (select from {{swap}}.merge_columns(p_live, p_table) as c where c.was is null and c.is_filling)
  then
    return false;
  end if;
  execute format('select count(*) from (select from only %s limit %s) as r', v_relation::regclass, p_most + 1) into v_rows;
  return v_rows > p_most;
end $lacks_twins$;

-- index_fillings(...): creates those indexes, which blocks writers of the table, but no reader. One that is impossible (its
-- expression does not fit) is left out. Also gives the planner statistics of the new columns.
create or replace function {{swap}}.index_fillings(p_epoch bigint, p_shape integer, p_table jsonb, p_twins jsonb) returns void
language plpgsql as $index_fillings$
declare
  v_live {{swap}}._tables;
  v_relation regclass;
  one record;
begin
  perform {{swap}}.fence(p_epoch);
  v_live := {{swap}}.live_to_fill(p_table, p_shape);
  v_relation := {{swap}}.live_table(v_live.name);
  perform set_config('lock_timeout', '2s', true);
  for one in
    select t.*, i.indisunique from jsonb_to_recordset(p_twins) as t (index oid, probe text, keys text, made text)
      join pg_index as i on i.indexrelid = t.index and i.indrelid = v_relation
    where '_filling_' || t.index not in (select w.name from {{swap}}.twins_of(v_relation) as w)
  loop
    if {{swap}}.attempt(format('select {{swap}}.probe_expression(%L, %L, %L)', nullif(concat_ws(', ', one.keys, one.probe), ''),
        v_relation, {{swap}}.needs_of('pg_class'::regclass, one.index, 0, v_relation))) is null then
      perform {{swap}}.attempt(format('create %s index %I on %s', case when one.indisunique then 'unique' else '' end,
        '_filling_' || one.index, one.made));
    end if;
  end loop;
  execute format('analyze %s', v_relation);
end $index_fillings$;

-- live_to_fill(table, shape): the catalog's row of the table, locked against other writers until the transaction ends.
create or replace function {{swap}}.live_to_fill(p_table jsonb, p_shape integer) returns {{swap}}._tables
language plpgsql as $live_to_fill$
declare
  v_live {{swap}}._tables := {{swap}}.locked_row(p_table ->> 'table_id', p_shape);
begin
  if {{swap}}.merge_obstacle(v_live, p_table) is not null then
    raise exception 'table % now has another shape', v_live.name using errcode = 'BT002';
  end if;
  perform {{swap}}.own_table(v_live.name);
  return v_live;
end $live_to_fill$;

-- fill_some(...): writes the values of new columns for the next p_most rows after the id p_after. Returns the last id,
-- null when there are no more, and how many rows were written.
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
    select format('update only {{schema}}.%I as l set %s from {{swap}}.%I as b
      where b.id = l.id and b.id > $1 and b.id <= $2 and (%s)', v_live.name,
      string_agg(format('%I = b.%I', c.filling, c.name), ', '), p_built,
      string_agg(format('l.%I is distinct from b.%I', c.filling, c.name), ' or '))
    from {{swap}}.merge_columns(v_live, p_table) as c where c.was is null
  ) using p_after, last;
  get diagnostics written = row_count;
end $fill_some$;

-- forget_fillings(epoch): drops columns that an ended lease was filling. They cost space only: where others hold the table
-- or may lock it next, where it is another role's, or an event trigger refuses that, they are left for the next time.
create or replace function {{swap}}.forget_fillings(p_epoch bigint) returns void
language plpgsql set plan_cache_mode = force_generic_plan set lock_timeout = '2s' as $forget_fillings$
declare
  one record;
begin
  perform {{swap}}.fence(p_epoch);
  for one in
    select t.table_id, t.name, string_agg('drop column ' || quote_ident(a.attname), ', ') as drops from {{swap}}._tables as t
      join pg_attribute as a on a.attrelid = {{swap}}.live_table(t.name) and not a.attisdropped
        and a.attname ~ '^_filling_[0-9a-f]{16}$'
    group by t.table_id
  loop
    begin
      perform {{swap}}.lock_relations(array[one.name], {{swap}}.soon());
      execute format('alter table {{schema}}.%I %s', one.name, one.drops);
      perform {{swap}}.may_change('{}');
      perform {{swap}}.show_columns(one.table_id, {{swap}}.live_table(one.name));
    exception when others then null;
    end;
  end loop;
end $forget_fillings$;
