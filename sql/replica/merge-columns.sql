-- The columns of a table that was built in {{swap}}, compared with those of the live table that it may be merged into.
-- Installed with install.sql.

-- filling_name(field): the name of the column that a field's values are written to before the column gets its own name.
create or replace function {{swap}}.filling_name(p_field text) returns text language sql immutable as $filling_name$
  select '_filling_' || left(md5(p_field), 16)
$filling_name$;

-- merge_columns(live, table): the columns of the built table. `was` is the live table's column of the same field, null
-- if it has none, for example because somebody dropped it; is_filling: some or all values are in the live table
-- already.
create or replace function {{swap}}.merge_columns(p_live {{swap}}._tables, p_table jsonb) returns table (
  name text, type regtype, was text, was_type oid, filling text, is_filling boolean
) language sql as $merge_columns$
  select n.name, n."columnType"::regtype, a.attname, a.atttypid, {{swap}}.filling_name(n."fieldId"), f.attname is not null
  from jsonb_to_recordset(p_table #> '{spec,columns}') as n ("fieldId" text, name text, "columnType" text)
    left join jsonb_to_recordset(p_live.spec -> 'columns') as o ("fieldId" text, name text) using ("fieldId")
    left join pg_attribute as a on a.attrelid = to_regclass(format('{{schema}}.%I', p_live.name))
      and a.attname = o.name and a.attnum > 0 and not a.attisdropped
    left join pg_attribute as f on f.attrelid = to_regclass(format('{{schema}}.%I', p_live.name))
      and f.attname = {{swap}}.filling_name(n."fieldId") and f.atttypid = n."columnType"::regtype
$merge_columns$;

-- can_merge(live, table): returns whether the live table differs only by missing columns. False if it lost its key, or
-- if somebody changed a column's type or created a column under the name of a new one.
create or replace function {{swap}}.can_merge(p_live {{swap}}._tables, p_table jsonb) returns boolean
language sql as $can_merge$
  with live as (
    select a.attname as name, a.atttypid as type, a.attnum, a.attgenerated, a.attrelid
    from pg_class as c join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.oid = to_regclass(format('{{schema}}.%I', p_live.name)) and c.relkind = 'r'
  ), wanted as (
    select * from {{swap}}.merge_columns(p_live, p_table)
  )
  select exists (
      select from live as l join pg_constraint as k on k.conrelid = l.attrelid and k.contype = 'p' and k.conkey = array[l.attnum]
      where l.name = 'id' and l.type = 'text'::regtype)
    and exists (select from live as l where l.name = 'created_time' and l.type = 'timestamp'::regtype)
    and not exists (
      select from jsonb_to_recordset(p_live.spec -> 'columns') as o ("fieldId" text, "columnType" text)
        left join jsonb_to_recordset(p_table #> '{spec,columns}') as n ("fieldId" text, "columnType" text)
          using ("fieldId", "columnType")
      where n."fieldId" is null)
    and not exists (
      select from wanted as w join live as l on l.name = w.was where l.type <> w.type or l.attgenerated <> '')
    and not exists (
      select from wanted as w join live as l on l.name = w.name
      where w.was is null and l.name not in (select o.was from wanted as o where o.was is not null)
        -- An alias makes room.
        and l.name not in (select a.name from {{swap}}.alias_columns(l.attrelid, p_live.table_id) as a))
$can_merge$;

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

-- is_published(name): returns whether a publication includes the table's rows.
create or replace function {{swap}}.is_published(p_name text) returns boolean language sql as $is_published$
  select exists (
    select from pg_publication as p cross join lateral pg_get_publication_tables(p.pubname::text) as t
    where t.relid = to_regclass(format('{{schema}}.%I', p_name)))
$is_published$;
