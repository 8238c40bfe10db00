-- New columns of tables that a customer publishes. Installed with install.sql.
--
-- A subscriber stops at a column that it does not have. So while columns are filled under names of ours, each publication of
-- the table gets a list of its other columns. When the new columns have their names, the publications are as before, and
-- the rows are written once more, a few at a time: that is how subscribers receive the values.

-- Publications that have such a list now.
create table if not exists {{swap}}._hiding_publications (
  table_id text not null,
  publication name not null,
  constraint _hiding_publications_pkey primary key (table_id, publication)
);

-- Tables with values that subscribers have not received, and the last id that was written for them.
create table if not exists {{swap}}._rows_to_send (
  table_id text not null,
  columns smallint[] not null,
  -- Subscribers have other values in the rows that are empty here.
  is_retyped boolean not null,
  after_id text not null default '',
  constraint _rows_to_send_pkey primary key (table_id)
);

-- is_published(name): returns whether a subscriber may follow the table by a publication.
create or replace function {{swap}}.is_published(p_name text) returns boolean language sql as $is_published$
  select exists (
      select from pg_publication as p cross join lateral pg_get_publication_tables(p.pubname::text) as t
      where t.relid = {{swap}}.live_table(p_name))
    and exists (select from pg_replication_slots as s where s.slot_type = 'logical' and s.database = current_database())
$is_published$;

-- may_hide(name): returns whether all publications of the table have a list of columns, or we may give them one. One of
-- all tables or of a schema cannot have any, and none can with replica identity full.
create or replace function {{swap}}.may_hide(p_name text) returns boolean language sql as $may_hide$
  select not exists (select from pg_publication as p where p.puballtables)
    and not exists (select from pg_publication_namespace as n where n.pnnspid = '{{schema}}'::regnamespace)
    and not exists (
      select from pg_publication_rel as r join pg_publication as p on p.oid = r.prpubid join pg_class as c on c.oid = r.prrelid
      where r.prrelid = {{swap}}.live_table(p_name) and r.prattrs is null
        and (c.relreplident = 'f' or not pg_has_role(p.pubowner, 'usage')))
$may_hide$;

-- publish_columns(table, publication, columns): sets the publication's list of columns; null: all, also later ones.
create or replace function {{swap}}.publish_columns(p_table oid, p_publication name, p_columns text) returns void
language plpgsql as $publish_columns$
declare
  v_filter text := (
    select pg_get_expr(r.prqual, r.prrelid) from pg_publication_rel as r join pg_publication as p on p.oid = r.prpubid
    where r.prrelid = p_table and p.pubname = p_publication);
begin
  execute format('alter publication %I drop table only %s', p_publication, p_table::regclass);
  execute format('alter publication %I add table only %s', p_publication, p_table::regclass)
    || coalesce(' (' || p_columns || ')', '') || coalesce(' where (' || v_filter || ')', '');
end $publish_columns$;

-- hide_fillings(live): keeps the columns that are being filled from the subscribers of the locked table.
create or replace function {{swap}}.hide_fillings(p_live {{swap}}._tables) returns void language plpgsql as $hide_fillings$
declare
  v_table oid := {{swap}}.live_table(p_live.name);
  one record;
begin
  for one in
    select p.pubname, string_agg(quote_ident(a.attname), ', ' order by a.attnum) as columns
    from pg_publication_rel as r join pg_publication as p on p.oid = r.prpubid
      join pg_attribute as a on a.attrelid = r.prrelid and a.attnum > 0 and not a.attisdropped
        and a.attname !~ '^_filling_[0-9a-f]{16}$'
        -- Generated columns are published since Postgres 18, on request.
        and (a.attgenerated = '' or a.attgenerated = to_jsonb(p) ->> 'pubgencols')
    where r.prrelid = v_table and r.prattrs is null and {{swap}}.may_hide(p_live.name)
    group by p.pubname
  loop
    perform {{swap}}.publish_columns(v_table, one.pubname, one.columns);
    insert into {{swap}}._hiding_publications values (p_live.table_id, one.pubname);
  end loop;
end $hide_fillings$;

-- show_columns(table_id, table): the publications have no such list any longer.
create or replace function {{swap}}.show_columns(p_table_id text, p_table oid) returns void language sql as $show_columns$
  select {{swap}}.publish_columns(p_table, p.pubname, null)
  from {{swap}}._hiding_publications as h join pg_publication as p on p.pubname = h.publication
    join pg_publication_rel as r on r.prpubid = p.oid and r.prrelid = p_table and r.prattrs is not null
  where h.table_id = p_table_id;
  delete from {{swap}}._hiding_publications as h where h.table_id = p_table_id
$show_columns$;

-- send_later(name, table_id, columns): records that subscribers of the table have not received all values of those of these
-- columns (merge_columns) that were filled, or that have another type: rows that are empty now are not written otherwise.
create or replace function {{swap}}.send_later(p_name text, p_table_id text, p_columns jsonb) returns void
language sql as $send_later$
  insert into {{swap}}._rows_to_send as r (table_id, columns, is_retyped)
  select p_table_id, array_agg(a.attnum), bool_or(c.had is not null)
  from jsonb_to_recordset(p_columns) as c (name text, had text, was text, is_filling boolean)
    join pg_attribute as a on a.attrelid = {{swap}}.live_table(p_name) and a.attname = c.name
  where c.was is null and (c.is_filling or c.had is not null) and {{swap}}.is_published(p_name)
  having count(*) > 0
  on conflict (table_id) do update
    set columns = r.columns || excluded.columns, is_retyped = r.is_retyped or excluded.is_retyped, after_id = ''
$send_later$;

-- send_some(table_id, most): writes the table's next rows for its subscribers. Returns null if there are none.
--   rows   an estimate of the table's rows      written   of these
create or replace function {{swap}}.send_some(
  p_table text, p_most integer, out relation text, out rows double precision, out written integer
) language plpgsql as $send_some$
declare
  one {{swap}}._rows_to_send;
  v_table oid;
  v_last text;
  v_sets text;
begin
  perform {{swap}}.lock_table(p_table);
  select * into one from {{swap}}._rows_to_send as r where r.table_id = p_table;
  if one.table_id is null then
    return;
  end if;
  select {{swap}}.live_table(t.name) into v_table from {{swap}}._tables as t where t.table_id = one.table_id;
  written := 0;
  -- A value that Postgres stores apart is only sent if it is another one.
  select string_agg(format(case when y.typlen = -1 then '%1$I = (%1$I::text || '''')::%2$s' else '%1$I = %1$I' end,
      a.attname, format_type(a.atttypid, a.atttypmod)), ', ')
  into v_sets
  from pg_attribute as a join pg_type as y on y.oid = a.atttypid
  where a.attrelid = v_table and a.attnum = any (one.columns) and not a.attisdropped and a.attgenerated = '';
  if v_sets is not null then
    select c.oid::regclass, greatest(c.reltuples, 0) into relation, rows from pg_class as c where c.oid = v_table;
    execute format('select max(n.id) from (select id from only %s where id > $1 order by id limit $2) as n', relation)
      into v_last using one.after_id, p_most;
    execute (
      select format('update only %s set %s where id > $1 and id <= $2 and ($3 or num_nonnulls(%s) > 0)', relation, v_sets,
        string_agg(quote_ident(a.attname), ', '))
      from pg_attribute as a where a.attrelid = v_table and a.attnum = any (one.columns) and not a.attisdropped
    ) using one.after_id, v_last, one.is_retyped;
    get diagnostics written = row_count;
  end if;
  update {{swap}}._rows_to_send as r set after_id = v_last where r.table_id = one.table_id and v_last is not null;
  delete from {{swap}}._rows_to_send as r where r.table_id = one.table_id and v_last is null;
end $send_some$;
