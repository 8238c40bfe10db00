-- Installs a replica: the customer's schema {{schema}} and ours, {{swap}}. Idempotent.
--
-- {{schema}} holds the replicated tables, _sync_meta (and its view __sync_meta__) and _sync_issues.
-- {{swap}} is where tables are built. It also holds the state that must be consistent with the rows in one transaction:
-- the epoch, the catalog, the read versions, the recent-writes log. Customers have no right to it.
--
-- Placeholders are quoted identifiers; {{swap_text}} is the name of {{swap}} as a string literal.

-- Others may create objects in {{schema}}, so nothing of ours is created there: it is created in {{swap}} and moved,
-- which fails if the name is taken. Statements that write to a moved table go through a view of its name in {{swap}}: a
-- view stays bound to its table, whatever is later created under that name.
-- own-tables.sql holds the functions; BT003: an object that is not ours is in the way.

do $sync_meta$
begin
  if not {{swap}}.bind_shown('_sync_meta', '{started_at, completed_at, duration_last}') then
    create table {{swap}}._sync_meta (
      started_at timestamptz,
      completed_at timestamptz,
      duration_last interval
    )
    -- An update each few seconds. Statistics of one row help no query, and each time they were written as WAL.
    with (autovacuum_vacuum_threshold = 1000, autovacuum_analyze_threshold = 1000);
    create unique index _sync_meta_one_row on {{swap}}._sync_meta ((true));
    insert into {{swap}}._sync_meta default values;
    -- A publication of the customer's may include all tables, and Postgres then refuses updates of a table that has neither
    -- a primary key nor a replica identity.
    alter table {{swap}}._sync_meta replica identity full;
    comment on table {{swap}}._sync_meta is
      'One row: the last sync. Everything that Airtable contained at started_at was in SQL at completed_at. If started_at is later than completed_at, a sync is running. In live mode, every read of Airtable''s changes is a sync, also if it finds none: while nothing changes, completed_at may be five minutes old, or more within a call budget, and the data is current.';
    perform {{swap}}.show_table('_sync_meta');
  end if;
  if {{swap}}.own_kind('__sync_meta__') is null then
    create view {{swap}}.__sync_meta__ as table {{schema}}._sync_meta;
    perform {{swap}}.show_reserved('__sync_meta__');
  end if;
end $sync_meta$;

do $sync_issues$
begin
  if not {{swap}}.bind_shown('_sync_issues', '{table_name, record_id, field, value, reason, seen_at}') then
    create table {{swap}}._sync_issues (
      table_name text not null,
      record_id text not null,
      field text not null,
      value text not null,
      reason text not null,
      seen_at timestamptz not null default now(),
      constraint _sync_issues_pkey primary key (table_name, record_id, field)
    );
    comment on table {{swap}}._sync_issues is
      'Cells whose value in Airtable does not fit the column. They are NULL (or cleaned) until they are corrected in Airtable. Rows whose reason begins with unreadable: are records, fields and tables that Airtable described in a way that cannot be read; they stay as they were. Other rows with an empty record_id are objects that the last change of a table could not carry over, with the statements that create them.';
    perform {{swap}}.show_table('_sync_issues');
  end if;
end $sync_issues$;

-- One row. epoch: the lease of the base that may write. recent_writes_floor: images with an older read version are
-- refused, because the recent-writes log no longer knows which images were applied after them. reader: the customer's
-- role.
create table if not exists {{swap}}._state (
  epoch bigint not null default 0,
  recent_writes_floor bigint not null default 0,
  reader text,
  -- Optional features, by the base's settings: link-views.sql, changes.sql.
  link_views boolean not null default false,
  history boolean not null default false,
  notify boolean not null default false,
  -- The server's timeline when the current lease began.
  timeline text,
  -- The incarnation that issues numbers, and what its epochs are greater than: advance().
  incarnation text,
  epochs_from bigint not null default 0,
  -- Greater than the recorded epoch until a lease has recorded that earlier claims are missing: claim().
  lost_epoch bigint not null default 0,
  -- How often the current lease was renewed: damage.sql.
  renewals integer not null default 0,
  -- For how long old names answer: aliases.sql.
  alias_days integer not null default 0,
  -- There are views to write to: write-views.sql.
  sql_writes boolean not null default false
);
create unique index if not exists _state_one_row on {{swap}}._state ((true));
insert into {{swap}}._state default values on conflict do nothing;
do $state_identity$
begin
  -- As of _sync_meta. Not again: other sessions would wait for the lock until everything is installed.
  if (select c.relreplident from pg_class as c where c.oid = '{{swap}}._state'::regclass) <> 'f' then
    alter table {{swap}}._state replica identity full;
  end if;
end $state_identity$;

-- The catalog: the shape of each table, and the assigned names, by the source's ids.
-- shape changes whenever the columns do. columns_since: the value of the read version counter when the live table got its columns; an image requested before may lack some of its columns.
create table if not exists {{swap}}._tables (
  table_id text primary key,
  name text not null,
  shape integer not null,
  spec jsonb not null,
  columns_since bigint not null default 0,
  -- the source's fields when all cells were last read: core/sync/engine/read-as.ts
  read_as jsonb,
  -- own_file() of the live table, as last seen: damage.sql
  file oid,
  -- The spec has columns with details of attachments: link-views.sql. Reading the specs of a thousand tables is slow.
  has_files boolean generated always as (jsonb_path_exists(spec, '$.columns[*].filesOf')) stored,
  constraint _tables_name_unique unique (name) deferrable initially deferred
);

-- Since when a name in _sync_history means this field: names are used again. Not in plain text before then, either.
-- id stands for the table's own name.
create table if not exists {{swap}}._column_names (
  table_id text not null,
  name text not null,
  table_name text not null,
  field_id text not null,
  is_hashed boolean not null,
  since timestamptz not null,
  constraint _column_names_pkey primary key (table_id, name)
);

-- Names of tables that were dropped while names were pinned.
create table if not exists {{swap}}._retired_tables (
  table_id text primary key,
  name text not null
);

create sequence if not exists {{swap}}._versions;

-- Numbers every shape of every table, so that a table that is dropped and comes back gets a new number. The sequence may
-- have been dropped.
create sequence if not exists {{swap}}._shapes as integer;
select setval('{{swap}}._shapes', greatest(
  nextval('{{swap}}._shapes'), (select coalesce(max(t.shape), 0) + 1 from {{swap}}._tables as t)));

-- The latest image applied to a record. applied_version: the read version counter at that moment. image: the record as
-- the source reported it, by field id, for a rebuild to apply again; null from a sweep or a poll: a rebuild that finds
-- it reads the record again. read_version: the read version taken before the source was asked for the image. written:
-- something other than a sweep has written the record since the entry exists.
create table if not exists {{swap}}._recent_writes (
  table_id text not null,
  record_id text not null,
  applied_version bigint not null,
  gone boolean not null,
  image jsonb,
  read_version bigint not null default 0,
  written boolean not null default false,
  constraint _recent_writes_pkey primary key (table_id, record_id)
)
-- Every entry is deleted after two minutes: a share of the rows would be a limit that moves with a large import. It is
-- logged, although short-lived: after a crash of the server, an older image must still lose to those that it had.
with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
create index if not exists _recent_writes_by_version on {{swap}}._recent_writes (applied_version);

-- prepare_session(): called by every statement that writes. BT003: the isolation level would hide commits made while
-- the statement waits for a lock, which the fence and the read versions must see. A commit is durable when it is
-- acknowledged, on a synchronous standby as well.
create or replace function {{swap}}.prepare_session() returns void language plpgsql as $prepare$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'Transactions of the role % begin as % on this server, but Basetide needs read committed: connect directly and not through a pooler, or set default_transaction_isolation = ''read committed'' for the role',
      current_user, current_setting('transaction_isolation') using errcode = 'BT003';
  end if;
  if current_setting('synchronous_commit') in ('off', 'local', 'remote_write') then
    -- For the session: its next statements need not call this again.
    perform set_config('synchronous_commit', 'on', false);
  end if;
end $prepare$;

-- timeline(): the timeline that the server writes to. It changes when a standby is promoted or a backup is restored,
-- and commits may then be missing. Null if the server does not report it.
create or replace function {{swap}}.timeline() returns text language plpgsql as $timeline$
begin
  -- The timeline of the last checkpoint lags behind a promotion.
  return left(pg_walfile_name(pg_current_wal_insert_lsn()), 8);
exception when others then
  return null;
end $timeline$;

-- identity(): identifies the server, its timeline, and the database. Parts that a server does not report are left out.
create or replace function {{swap}}.identity() returns text language plpgsql as $identity$
declare
  v_server text;
begin
  begin
    select c.system_identifier into v_server from pg_control_system() as c;
  exception when others then
    null;
  end;
  return format('%s/%s/%s', v_server, {{swap}}.timeline(),
    (select d.oid from pg_database as d where d.datname = current_database()));
end $identity$;

-- incarnation(): identifies this run of the server, and these tables. Whatever can lose commits changes it: a promoted
-- standby, a server that starts from older files, tables that are restored from a dump. So does a plain restart.
-- Where a provider hides the server's start, older files on the same timeline go unnoticed.
create or replace function {{swap}}.incarnation() returns text language plpgsql stable as $incarnation$
declare
  run text;
begin
  -- The branch that is not taken is not looked at: an expression with a function that is denied fails as a whole.
  if has_function_privilege('pg_postmaster_start_time()', 'execute') then
    run := extract(epoch from pg_postmaster_start_time());
  else
    run := {{swap}}.timeline();
  end if;
  return format('%s %s', run, '{{swap}}._versions'::regclass::oid);
end $incarnation$;
-- The first incarnation issues numbers from 1.
update {{swap}}._state set incarnation = {{swap}}.incarnation() where incarnation is null;

-- advance(): called before an epoch, a read version, an applied version or a shape is issued or compared. When the
-- incarnation has changed, moves all counters past every number that an earlier incarnation has issued: no number is
-- issued twice, even if this database has lost it. Row images that were requested before the loss then lose to every
-- image that is applied after it (I1, I2), and a lease whose claim was lost cannot write (I5).
--
-- Two incarnations that start from the same state differ by the clock: they issue fewer numbers than microseconds pass
-- (shapes: seconds; an integer lasts until 2088). The steps are for a clock that was set back. They are small, so that
-- frequent restarts do not carry the counters ahead of the clock.
-- After a restart that loses nothing, numbers that were issued before it are still valid, and the lease continues.
create or replace function {{swap}}.advance() returns void language plpgsql as $advance$
declare
  v_now numeric := extract(epoch from clock_timestamp());
begin
  if (select s.incarnation = {{swap}}.incarnation() from {{swap}}._state as s) then
    return;
  end if;
  -- Of concurrent statements, one gets the row. The others wait until the numbers have moved.
  update {{swap}}._state as s
  set incarnation = {{swap}}.incarnation(), epochs_from = greatest(s.epoch + 1000, (v_now * 1000000)::bigint)
  where s.incarnation is distinct from {{swap}}.incarnation();
  if found then
    perform setval('{{swap}}._versions', greatest(nextval('{{swap}}._versions') + 1000, (v_now * 1000000)::bigint));
    perform setval('{{swap}}._shapes', greatest(nextval('{{swap}}._shapes') + 10,
      (v_now - extract(epoch from timestamptz '2020-01-01 00:00:00Z'))::bigint));
    perform {{swap}}.find_again();
  end if;
end $advance$;

-- read_version(): issues a read version.
create or replace function {{swap}}.read_version() returns bigint language plpgsql as $read_version$
begin
  perform {{swap}}.fence(null);
  return nextval('{{swap}}._versions');
end $read_version$;

-- claim(above): raises the epoch, which ends the previous holder's right to write (I5). Waits for that holder's current
-- write, which is a single statement, so a frozen process cannot hold it open.
--   p_above   the greatest epoch that is recorded outside of this database: the new one is greater
--   previous, previous_renewals  the epoch before, and how often its lease was renewed
--   identity  the server's, at this moment
--   has_lost  earlier claims are missing here, and so may be other commits. Stays true until the caller that is told so
--             has recorded its own epoch, so that a process that dies in between does not hide it
--
-- plan_cache_mode, here and in what else a lease runs once: Postgres would plan a statement anew in its first five runs.
create or replace function {{swap}}.claim(
  p_above bigint default 0, out raised bigint, out previous bigint, out previous_renewals integer,
  out has_lost boolean, out identity text
) language plpgsql set plan_cache_mode = force_generic_plan set lock_timeout = '30s' as $claim$
begin
  perform {{swap}}.prepare_session();
  perform pg_advisory_xact_lock(hashtextextended({{swap_text}} || ' epoch', 0));
  -- Also where the incarnation is the same, as in a snapshot of a running machine.
  update {{swap}}._state as s set incarnation = null where s.epoch < p_above;
  perform {{swap}}.advance();
  select s.epoch, s.renewals into previous, previous_renewals from {{swap}}._state as s;
  update {{swap}}._state as s
  set renewals = 0, epoch = greatest(s.epoch, s.epochs_from, p_above) + 1, timeline = {{swap}}.timeline(),
    lost_epoch = case when s.epoch < p_above then p_above + 1 else s.lost_epoch end
  returning s.epoch, s.lost_epoch > p_above into raised, has_lost;
  identity := {{swap}}.identity();
  perform {{swap}}.forget_started();
end $claim$;

-- forget_started(): records that the running sync will not complete. No sync runs then, and the replica is complete up
-- to the start of the last completed one.
create or replace function {{swap}}.forget_started() returns void language sql as $forget$
  update {{swap}}._sync_meta
  set started_at = completed_at - extract(epoch from duration_last) * interval '1 second'
  where started_at > completed_at or completed_at is null and started_at is not null;
$forget$;

-- fence(epoch): raises BT001 unless epoch is the current one; holds it until the transaction ends. Raises BT006 if the
-- server's timeline has changed since that lease began: rows that the lease knows of may have been lost with the old
-- timeline, so a new lease must compare them. null passes: a proxied write belongs to no lease. Moves the numbers of a
-- new incarnation first (advance).
--
-- The timeline and the incarnation are compared with those that an earlier statement of the session has verified: a
-- server that accepts writes has the same ones until it ends its sessions.
create or replace function {{swap}}.fence(p_epoch bigint) returns void language plpgsql as $fence$
declare
  current_epoch bigint;
  begun_on text;
  v_server text;
begin
  if p_epoch is not null then
    perform pg_advisory_xact_lock_shared(hashtextextended({{swap_text}} || ' epoch', 0));
  end if;
  -- After the lock: a claim takes it before the row of _state, too. Without a parameter, it is planned once.
  select s.epoch, coalesce(s.timeline, '') || ' ' || s.incarnation into current_epoch, v_server from {{swap}}._state as s;
  if (p_epoch is null or current_epoch = p_epoch) and v_server = current_setting('basetide.server', true)
    -- As in prepare_session().
    and current_setting('transaction_isolation') = 'read committed'
    and current_setting('synchronous_commit') not in ('off', 'local', 'remote_write')
  then
    return;
  end if;
  perform {{swap}}.prepare_session();
  perform {{swap}}.advance();
  if p_epoch is not null then
    select s.epoch, s.timeline into current_epoch, begun_on from {{swap}}._state as s;
    if current_epoch <> p_epoch then
      raise exception 'epoch % was overtaken by %', p_epoch, current_epoch using errcode = 'BT001';
    end if;
    if begun_on <> {{swap}}.timeline() then
      raise exception 'the server was on timeline % when epoch % began, and is on % now: commits may be lost',
        begun_on, p_epoch, {{swap}}.timeline() using errcode = 'BT006';
    end if;
  end if;
  perform set_config('basetide.server', (
    select coalesce({{swap}}.timeline(), '') || ' ' || s.incarnation from {{swap}}._state as s), false);
end $fence$;

-- lock_table(table_id): admits one writer of a table at a time, until the transaction ends.
create or replace function {{swap}}.lock_table(p_table text) returns void language plpgsql as $lock$
begin
  perform {{swap}}.prepare_session();
  perform pg_advisory_xact_lock(hashtextextended({{swap_text}} || ' table ' || p_table, 0));
end $lock$;

-- mark_sync(epoch, ...): the running sync has completed now, another one begins now, or both: its start is the end of the one
-- before, so that between two syncs that follow each other no reader sees that none is running. Sweep follows sweep, so this
-- is the only statement of a sweep that changes nothing.
--   p_is_checked                             the sync has dealt with `overtaken`
--   p_catalog, p_tables, p_applied_versions  the state of the catalog that the sync knows, and up to which version it knows
--                                            each table; null if only times are marked
--   p_logged_up_to                           the smallest of the applied versions
-- The result:
--   overtaken     tables that other processes wrote beyond their applied version. Nothing has completed then, unless
--                 p_is_checked: such a write may show what a record was before this sync began
--   issues        the state of _sync_issues: it differs if they do
-- and for the next sync:
--   read_version     a new one
--   is_same_catalog  whether the catalog still has the state p_catalog
--   written          the tables that have committed entries of the recent-writes log beyond their applied version. Takes
--                    no table's lock: entries that are committed later are found by the next sync
--   has_recent_writes  whether the recent-writes log has any entries
--
-- Every sync of every base calls it, usually with cold caches: therefore it calls few functions, and its statements are
-- planned once. The update contains the conditions of fence(), which takes over when one of them is not met.
--
-- A commit that only marks times is not waited for. If the server crashes before it is durable, _sync_meta shows earlier
-- times, which were true as well; rows are not lost, since their commits are waited for. A read version is waited for,
-- too: after a crash of a single session, the server restarts as the same incarnation, and would issue it again.
create or replace function {{swap}}.mark_sync(
  p_epoch bigint, p_completes boolean, p_begins boolean, p_is_checked boolean,
  p_catalog bigint, p_tables text[], p_applied_versions bigint[], p_logged_up_to bigint,
  out overtaken text[], out read_version bigint, out is_same_catalog boolean, out written text[], out issues text,
  out has_recent_writes boolean
) language plpgsql set plan_cache_mode = force_generic_plan as $mark_sync$
declare
  -- Before any lock: what has completed is in the replica already, and what begins has requested nothing yet.
  v_now timestamptz := clock_timestamp();
  v_is_numbered boolean := p_begins and p_tables is not null;
  v_newest bigint;
  v_is_fenced boolean := false;
begin
  -- A condition costs less than a statement; the result is never null.
  if pg_advisory_xact_lock_shared(hashtextextended({{swap_text}} || ' epoch', 0)) is null then
    return;
  end if;
  -- Before the read version is taken: entries that are committed later are found by the end of the next sync.
  v_newest := (select max(j.applied_version) from {{swap}}._recent_writes as j);
  has_recent_writes := v_newest is not null;
  if v_newest > p_logged_up_to then
    select array_agg(distinct j.table_id), array_agg(distinct j.table_id) filter (where j.written)
    into written, overtaken
    from unnest(p_tables, p_applied_versions) as k (table_id, applied_version)
      join {{swap}}._recent_writes as j on j.table_id = k.table_id and j.applied_version > k.applied_version
    where j.applied_version > p_logged_up_to;
    if overtaken is not null and not p_is_checked then
      return;
    end if;
  end if;
  loop
    update {{swap}}._sync_meta as m
    set completed_at = case when p_completes then v_now else m.completed_at end,
      -- The clock may have been set back.
      duration_last = case when p_completes then v_now - least(v_now, m.started_at) else m.duration_last end,
      -- Later than completed_at: a sync is running.
      started_at = case when p_begins then v_now + interval '1 microsecond' else least(v_now, m.started_at) end
    from {{swap}}._state as s
    where s.epoch = p_epoch
      and coalesce(s.timeline, '') || ' ' || s.incarnation = current_setting('basetide.server', true)
      -- As in prepare_session().
      and current_setting('transaction_isolation') = 'read committed'
      and (not v_is_numbered or current_setting('synchronous_commit') not in ('off', 'local', 'remote_write'))
    returning case when v_is_numbered then nextval('{{swap}}._versions') end,
      -- As in core/replica/replica.ts. Changes whenever a row of the catalog does, or the owner of its table. The owner is
      -- a subquery: Postgres would join all of pg_class, since it has no statistics about so small a table. A row whose
      -- table was dropped counts too: record_damage changes it.
      p_catalog is not null and p_catalog = (
        select coalesce(bit_xor(hashint8extended(coalesce((select c.relowner::bigint from pg_class as c
          where c.relname = t.name::name and c.relnamespace = to_regnamespace('{{schema}}')), 0),
          hashtextextended(t.table_id, t.xmin::text::bigint))), 0)
        from {{swap}}._tables as t),
      case when p_completes then (
        select concat_ws(' ', count(*), max(i.seen_at)) from {{swap}}._sync_issues as i) end
    into read_version, is_same_catalog, issues;
    exit when found or v_is_fenced;
    -- Raises, or moves the numbers of a new incarnation.
    perform {{swap}}.fence(p_epoch);
    v_is_fenced := true;
  end loop;
  if not v_is_numbered and not v_is_fenced and current_setting('synchronous_commit') <> 'off' then
    perform set_config('synchronous_commit', 'off', true);
  end if;
end $mark_sync$;

-- mark_sync_started(epoch, ago): a sync is running that started `ago` before now.
create or replace function {{swap}}.mark_sync_started(p_epoch bigint, p_ago interval) returns void
language plpgsql as $mark_started$
begin
  perform {{swap}}.fence(p_epoch);
  update {{swap}}._sync_meta set started_at = clock_timestamp() - p_ago;
end $mark_started$;

-- mark_sync_unchanged(epoch, ago): the source was asked `ago` before now, and everything it had until then is here:
-- counts as a sync that started then and completed.
create or replace function {{swap}}.mark_sync_unchanged(p_epoch bigint, p_ago interval) returns void
language plpgsql as $mark_unchanged$
begin
  perform {{swap}}.fence(p_epoch);
  update {{swap}}._sync_meta
  set started_at = clock_timestamp() - p_ago, completed_at = clock_timestamp(), duration_last = p_ago;
end $mark_unchanged$;

-- mark_sync_ended(epoch): the running sync has ended without completing.
create or replace function {{swap}}.mark_sync_ended(p_epoch bigint) returns void
language plpgsql as $mark_ended$
begin
  perform {{swap}}.fence(p_epoch);
  perform {{swap}}.forget_started();
end $mark_ended$;
