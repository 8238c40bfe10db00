-- The columns of a table that was built in {{swap}}, compared with those of the live table that it may be merged into.
-- Installed with install.sql.

-- filling_name(field): the name of the column that a field's values are written to before the column gets its own name.
create or replace function {{swap}}.filling_name(p_field text) returns text language sql immutable as $filling_name$
  select '_filling_' || left(md5(p_field), 16)
$filling_name$;

-- merge_columns(live, table): the columns of the built table. `had` is the live table's column of the same field, null
-- if it has none, for example because somebody dropped it. `was` is the same, unless that column has another type: then
-- a new one takes its place. is_filling: some or all values of a new column are in the live table already.
create or replace function {{swap}}.merge_columns(p_live {{swap}}._tables, p_table jsonb) returns table (
  name text, type regtype, had text, was text, filling text, is_filling boolean
) language sql as $merge_columns$
  select n.name, n."columnType"::regtype, a.attname,
    case when a.atttypid = n."columnType"::regtype and a.attgenerated = '' then a.attname end,
    {{swap}}.filling_name(n."fieldId"), f.attname is not null
  from jsonb_to_recordset(p_table #> '{spec,columns}') as n ("fieldId" text, name text, "columnType" text)
    left join jsonb_to_recordset(p_live.spec -> 'columns') as o ("fieldId" text, name text) using ("fieldId")
    left join pg_attribute as a on a.attrelid = to_regclass(format('{{schema}}.%I', p_live.name))
      and a.attname = o.name and a.attnum > 0 and not a.attisdropped
    left join pg_attribute as f on f.attrelid = to_regclass(format('{{schema}}.%I', p_live.name))
      and f.attname = {{swap}}.filling_name(n."fieldId") and f.atttypid = n."columnType"::regtype
$merge_columns$;

-- going_columns(live, table): the live table's columns that the new shape does not have, or has with another type
-- (is_retyped).
create or replace function {{swap}}.going_columns(p_live {{swap}}._tables, p_table jsonb)
returns table (attnum smallint, name name, is_retyped boolean) language sql as $going_columns$
  select a.attnum, a.attname, n."fieldId" is not null
  from jsonb_to_recordset(p_live.spec -> 'columns') as o ("fieldId" text, name text)
    join pg_attribute as a on a.attrelid = to_regclass(format('{{schema}}.%I', p_live.name)) and a.attname = o.name
      and a.attnum > 0 and not a.attisdropped
    left join jsonb_to_recordset(p_table #> '{spec,columns}') as n ("fieldId" text) using ("fieldId")
  where a.attname not in (select c.was from {{swap}}.merge_columns(p_live, p_table) as c where c.was is not null)
$going_columns$;

-- taken_name(live, table): which name that a column is to get is that of a column of the customer's, and the remedy; null
-- if none is.
create or replace function {{swap}}.taken_name(p_live {{swap}}._tables, p_table jsonb) returns text language sql as $taken_name$
  with wanted as (
    select * from {{swap}}.merge_columns(p_live, p_table)
  )
  select format(
    'the new column %1$I has the name of a column that Basetide did not create: alter table %2$s rename column %1$I to %3$I',
    min(w.name), {{swap}}.shown_name(p_live.name), {{swap}}.cut_name(min(w.name), 58) || '_mine')
  from wanted as w join pg_attribute as a
    on a.attrelid = {{swap}}.live_table(p_live.name) and a.attname = w.name and a.attnum > 0 and not a.attisdropped
  where (w.was is null or w.had <> w.name) and w.name not in (select o.was from wanted as o where o.was is not null)
    and a.attname not in (select g.name from {{swap}}.going_columns(p_live, p_table) as g)
    -- An alias makes room.
    and a.attname not in (select l.name from {{swap}}.alias_columns(a.attrelid, p_live.table_id) as l)
  having count(*) > 0
$taken_name$;

-- merge_obstacle(live, table): why the live table cannot get the new shape, and the remedy; null if it can.
create or replace function {{swap}}.merge_obstacle(p_live {{swap}}._tables, p_table jsonb) returns text
language sql as $merge_obstacle$
  with live as (
    select a.attname as name, a.atttypid as type, a.attnum, a.attrelid
    from pg_attribute as a where a.attrelid = {{swap}}.live_table(p_live.name) and a.attnum > 0 and not a.attisdropped
  )
  select case
    when not exists (select from live as l where l.name = 'id' and l.type = 'text'::regtype)
      then format('its column id is missing or has another type. To have it copied again: drop table %s', s.name)
    when not exists (
      select from live as l join pg_constraint as k on k.conrelid = l.attrelid and k.contype = 'p' and k.conkey = array[l.attnum]
      where l.name = 'id') then format('its primary key is missing: alter table %s add primary key (id)', s.name)
    when not exists (select from live as l where l.name = 'created_time' and l.type = 'timestamp'::regtype)
      then format('its column created_time is missing: alter table %s add column created_time timestamp', s.name)
    when taken.name is not null then taken.name
    when (select count(*) from pg_attribute as a where a.attrelid = {{swap}}.live_table(p_live.name) and a.attnum > 0)
        + (select count(*) from {{swap}}.merge_columns(p_live, p_table) as w where w.was is null and not w.is_filling) > 1600
      then 'Postgres has no room for another column: a table has 1,600 columns at most, and dropped ones count. To have it copied into a new table: operator base rebuild'
    end
  from {{swap}}.shown_name(p_live.name) as s (name) cross join {{swap}}.taken_name(p_live, p_table) as taken (name)
$merge_obstacle$;

-- common_values(built, columns, published): the most frequent value of each new column in the built table, as text, by
-- name; null if it must not be a default: subscribers of a publication would not get it.
create or replace function {{swap}}.common_values(p_built text, p_columns text[], p_published boolean) returns jsonb
language plpgsql as $common_values$
declare
  one text;
  v_value text;
  v_values jsonb := '{}';
begin
  foreach one in array p_columns loop
    v_value := null;
    if not p_published then
      execute format('select f.value from (select b.%I::text as value from {{swap}}.%I as b limit 1000) as f
        group by f.value order by count(*) desc, f.value nulls first limit 1', one, p_built) into v_value;
    end if;
    -- The system catalog has no room for long values.
    v_values := v_values || jsonb_build_object(one, case when octet_length(v_value) <= 500 then v_value end);
  end loop;
  return v_values;
end $common_values$;
