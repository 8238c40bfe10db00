-- Drops the columns of deleted fields. Installed with install.sql.

-- drop_columns(...): drops the live table's columns that its new catalog row does not have. BT002: the live table has
-- another shape than p_shape, or other columns. What others have put on them is reported (column-parts.sql).
--   p_statements  run at the end
--   p_settled   sessions that read the catalog and had time to lock what they found; null: all of them
create or replace function {{swap}}.drop_columns(
  p_epoch bigint, p_shape integer, p_table jsonb, p_statements text[], p_settled text[]
) returns void language plpgsql as $drop_columns$
declare
  v_name text := p_table ->> 'name';
  v_live {{swap}}._tables;
begin
  perform {{swap}}.fence(p_epoch);
  perform {{swap}}.wait_until({{swap}}.soon());
  v_live := {{swap}}.locked_row(p_table ->> 'table_id', p_shape);
  if v_live.spec ? 'isDamaged' or exists (select from {{swap}}.merge_columns(v_live, p_table) as c where c.was is null) then
    raise exception 'table % now has other columns', v_name using errcode = 'BT002';
  end if;
  perform {{swap}}.probe_table(v_live.name);
  perform {{swap}}.own_table(v_live.name);
  delete from {{swap}}._sync_issues as i using {{swap}}.going_columns(v_live, p_table) as g
  where i.table_name = v_live.name and i.field = g.name and i.record_id <> '';
  -- The customer's deferred triggers would block the change.
  set constraints all immediate;
  perform {{swap}}.lock_for_links();
  perform {{swap}}.reshape(v_live, null, p_table, p_statements, '{}', '{}', null);
  perform {{swap}}.make_apply(p_table ->> 'table_id');
  perform {{swap}}.may_change(p_settled);
end $drop_columns$;
