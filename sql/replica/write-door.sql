-- What the views of {{write}} do when they are written to. Installed when the setting of SQL writes is turned on, by the
-- role {{owner}}, which owns all of it and cannot log in. Idempotent.
--
-- A written row becomes an intent. At the end of the transaction, all of its intents are sent to Basetide's endpoint,
-- which makes them in Airtable and shows the records in the tables; the answer, or an error, is the transaction's. In the
-- mode at_once, each row is sent by its statement.
--
-- If writes are queued, nothing connects to the endpoint: the intents are committed to the outbox, which a proxy reads.
--
-- The functions run with the rights of their owner, because clients may neither connect to other servers nor read
-- intents.

create table if not exists {{own}}.endpoint (
  -- The parameters of a connection, with the secret of this database.
  connection text not null
);
create unique index if not exists endpoint_one_row on {{own}}.endpoint ((true));

create table if not exists {{own}}.fields (
  table_id text not null,
  field_id text not null,
  name text not null,
  source_name text not null,
  type text not null,
  is_writable boolean not null,
  constraint fields_pkey primary key (table_id, field_id)
);

-- The mode that a role starts with; at_commit without a row.
create table if not exists {{own}}.writers (
  role name not null,
  mode text not null,
  constraint writers_pkey primary key (role),
  constraint writers_mode_check check (mode in ('at_commit', 'at_once'))
);

-- A transaction deletes those that it has inserted, so a session has those of its current transaction only.
create unlogged table if not exists {{own}}.intents (
  pid integer not null,
  nth integer not null,
  intent jsonb not null,
  constraint intents_pkey primary key (pid, nth)
);

-- Transactions whose writes are queued, for the proxy that has them made. Once they have results, they are kept for the
-- log, without the values.
create table if not exists {{own}}.outbox (
  -- Drawn at COMMIT: of two transactions, the one that was committed before the other began to commit has the lower one.
  nth bigint generated always as identity,
  -- The id of the change set that it becomes: a transaction that is read twice becomes one.
  set_id text not null,
  at timestamptz not null default clock_timestamp(),
  role name not null,
  application_name text not null,
  note text not null,
  typecast boolean not null,
  -- Of the written fields, by id.
  types jsonb not null,
  operations jsonb not null,
  rows integer not null,
  bytes integer not null,
  state text not null default 'queued',
  -- Of each operation, in their order: {"state", "record", "error"}.
  results jsonb,
  constraint outbox_pkey primary key (nth),
  constraint outbox_set_key unique (set_id),
  constraint outbox_state_check check (state in ('queued', 'taken', 'ended'))
);
create index if not exists outbox_open_idx on {{own}}.outbox (nth) where state <> 'ended';
grant select, insert, update, delete on {{own}}.outbox to {{admin}};

-- is_queued(): writes go to the outbox.
create or replace function {{own}}.is_queued() returns boolean language sql immutable as $is_queued$
  select {{is_queued}}
$is_queued$;

create or replace function {{own}}.owner() returns name language sql immutable as $owner$
  select {{owner_text}}::name
$owner$;

-- writable_types(): of fields that Airtable does not compute.
create or replace function {{own}}.writable_types() returns text[] language sql immutable as $writable_types$
  select {{writable_types}}::text[]
$writable_types$;

-- setting(name): of the session; null if it is not set.
create or replace function {{own}}.setting(p_name text) returns text language sql stable as $setting$
  select nullif(current_setting(p_name, true), '')
$setting$;

-- is_on(name): returns whether the session has turned this setting on.
create or replace function {{own}}.is_on(p_name text) returns boolean language plpgsql stable as $is_on$
begin
  return coalesce({{own}}.setting(p_name)::boolean, false);
exception when invalid_text_representation then
  raise exception '% must be on or off', p_name using errcode = '22023';
end $is_on$;

-- mode(): at_commit or at_once.
create or replace function {{own}}.mode() returns text language plpgsql stable as $mode$
declare
  v_mode text := coalesce({{own}}.setting('basetide.writes'),
    (select w.mode from {{own}}.writers as w where w.role = session_user), 'at_commit');
begin
  if v_mode not in ('at_commit', 'at_once') then
    raise exception 'basetide.writes must be at_commit or at_once, not "%"', v_mode using errcode = '22023';
  elsif v_mode = 'at_once' and {{own}}.is_queued() then
    raise exception 'writes to this base are queued: nothing can be written at once' using errcode = '0A000',
      hint = 'Set basetide.writes to at_commit, and read the results in the view "log" of this schema.';
  end if;
  return v_mode;
end $mode$;

-- checks_rows(): returns whether rows must be in Airtable what they were here.
create or replace function {{own}}.checks_rows() returns boolean language plpgsql stable as $checks_rows$
declare
  v_check text := {{own}}.setting('basetide.check');
begin
  if v_check not in ('off', 'row') then
    raise exception 'basetide.check must be row or off, not "%"', v_check using errcode = '22023';
  end if;
  return coalesce(v_check = 'row', false);
end $checks_rows$;

-- cell_of(row, column, type): returns the value of a column. A barcode is a text, because a program that reads JSON may round
-- a number of more than 15 digits.
create or replace function {{own}}.cell_of(p_row jsonb, p_name text, p_type text) returns jsonb
language sql stable as $cell_of$
  select case p_type when 'barcode' then to_jsonb(p_row ->> p_name) else p_row -> p_name end
$cell_of$;

-- write_row(table id): the trigger of the views.
create or replace function {{own}}.write_row() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $write_row$
declare
  v_old jsonb := case when tg_op <> 'INSERT' then to_jsonb(old) end;
  v_new jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) end;
  v_intent jsonb := jsonb_build_object('operation', case tg_op
    when 'INSERT' then 'create' when 'UPDATE' then 'update' else 'delete' end, 'table', tg_argv[0]);
  v_mode text := {{own}}.mode();
  v_wrong text;
  v_fields jsonb;
  v_answer jsonb;
  v_is_there boolean;
begin
  v_wrong := case when tg_op = 'DELETE' then null
    when v_new -> 'id' is distinct from coalesce(v_old -> 'id', 'null') then 'id'
    when v_new -> 'created_time' is distinct from coalesce(v_old -> 'created_time', 'null') then 'created_time' end;
  if v_wrong is null and tg_op <> 'DELETE' then
    select min(f.name) filter (where not f.is_writable),
      coalesce(jsonb_object_agg(f.field_id, {{own}}.cell_of(v_new, f.name, f.type)) filter (where f.is_writable), '{}')
    into v_wrong, v_fields from {{own}}.fields as f
    where f.table_id = tg_argv[0] and v_new -> f.name is distinct from coalesce(v_old -> f.name, 'null');
  end if;
  if v_wrong is not null then
    raise exception 'the column "%" of % cannot be written: Airtable computes it', v_wrong, tg_relid::regclass
      using errcode = '428C9', column = v_wrong, table = tg_table_name, schema = tg_table_schema,
        hint = 'Leave it out.';
  end if;
  if tg_op <> 'DELETE' then
    if tg_op = 'UPDATE' and v_fields = '{}' then
      return new;
    end if;
    v_intent := v_intent || jsonb_build_object('fields', v_fields);
    -- Of write.attach.
    if {{own}}.setting('basetide.filenames') is not null then
      v_intent := v_intent || jsonb_build_object('filenames', {{own}}.setting('basetide.filenames')::jsonb);
    end if;
  end if;
  if tg_op <> 'INSERT' then
    v_intent := v_intent || jsonb_build_object('record', v_old -> 'id', 'before', (
      select coalesce(jsonb_object_agg(f.field_id, {{own}}.cell_of(v_old, f.name, f.type)), '{}') from {{own}}.fields as f
      where f.table_id = tg_argv[0] and f.is_writable and (v_fields is null or v_fields ? f.field_id)));
    if {{own}}.checks_rows() then
      v_intent := v_intent || jsonb_build_object('expected', (
        select coalesce(jsonb_object_agg(f.field_id, v_old -> f.name), '{}') from {{own}}.fields as f
        where f.table_id = tg_argv[0] and f.is_writable
          -- The column has other URLs, or not all barcodes.
          and f.type not in ('attachment', 'barcode')
          -- As text, the column has the first of its links.
          and not (f.type = 'links' and jsonb_typeof(v_old -> f.name) = 'string')));
    end if;
  end if;
  if octet_length(v_fields::text) > 100000 then
    raise exception 'a row is longer than 100 kB' using errcode = '54000', table = tg_table_name, schema = tg_table_schema;
  end if;
  if v_mode = 'at_commit' then
    perform {{own}}.intend(v_intent);
    return coalesce(new, old);
  end if;
  perform {{own}}.count_at_once();
  if tg_op = 'DELETE' then
    -- A join may have the row twice.
    execute format('select exists (select from %s as t where t.id = $1)', tg_relid::regclass) into v_is_there using old.id;
    if not v_is_there then
      return null;
    end if;
  end if;
  v_answer := {{own}}.send(jsonb_build_array(v_intent));
  if tg_op = 'DELETE' then
    return old;
  end if;
  execute format('select * from %s as t where t.id = $1', tg_relid::regclass) into new using v_answer #>> '{records,0}';
  if new.id is null then
    -- SQL does not show it yet.
    new := jsonb_populate_record(new, v_new || jsonb_build_object('id', v_answer #> '{records,0}'));
  end if;
  return new;
end $write_row$;

-- intend(intent): keeps it for the end of the transaction.
create or replace function {{own}}.intend(p_intent jsonb) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $intend$
declare
  v_nth integer := 1 + coalesce((
    select i.nth from {{own}}.intents as i where i.pid = pg_backend_pid() order by i.nth desc limit 1), 0);
begin
  if current_setting('transaction_isolation') = 'serializable' and not {{own}}.is_queued() then
    -- Postgres may find out after the writes are sent that it cannot commit. The client would repeat them.
    raise exception 'writes need the isolation level read committed or repeatable read' using errcode = '0A000';
  end if;
  -- write.submit() is an intent, and not a row.
  if v_nth > 10000 and not (v_nth = 10001 and (p_intent ? 'submit' or exists (
      select from {{own}}.intents as i where i.pid = pg_backend_pid() and i.intent ? 'submit'))) then
    raise exception 'a transaction writes at most 10,000 rows' using errcode = '54000',
      hint = 'Write the rest in another transaction.';
  end if;
  if v_nth = 1 then
    -- The client may have made all constraints immediate.
    set constraints {{own}}.send_intents, {{own}}.send_last deferred;
  end if;
  insert into {{own}}.intents (pid, nth, intent) values (pg_backend_pid(), v_nth, p_intent);
end $intend$;

-- count_at_once(): refuses what the mode at_once cannot do.
create or replace function {{own}}.count_at_once() returns void language plpgsql as $count_at_once$
declare
  v_statement text := extract(epoch from statement_timestamp())::text;
  v_sent text[] := string_to_array({{own}}.setting('basetide.sent_at_once'), ' ');
  v_nth integer := 1;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'writes at once need the isolation level read committed' using errcode = '0A000',
      hint = 'Set basetide.writes to at_commit, or use read committed.';
  end if;
  if v_sent[1] = v_statement and v_sent[2] ~ '^\d{1,4}$' then
    v_nth := v_sent[2]::integer + 1;
  end if;
  if v_nth > 50 then
    raise exception 'a statement writes at most 50 rows at once: those are made' using errcode = '54000',
      hint = 'Set basetide.writes to at_commit for more rows.';
  end if;
  perform set_config('basetide.sent_at_once', v_statement || ' ' || v_nth, true);
end $count_at_once$;

-- send_intents(): sends the intents of the transaction, at its end. The first one only adds a last one: what is added while
-- triggers run comes after all that were deferred before. So constraints of the customer's tables fail before anything is sent.
create or replace function {{own}}.send_intents() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $send_intents$
declare
  v_intents jsonb;
  v_submitted text;
  -- Texts, quoted names and comments.
  v_not_words constant text :=
    $re$e'([^'\\]|\\.|'')*'|'([^']|'')*'|"[^"]*"|--[^\n]*|/\*([^*]|\*+[^*/])*\*+/$re$;
begin
  if new.nth > 0 then
    if current_query() ~* '(set\s+constraints|prepare\s+transaction)'
      and regexp_replace(current_query(), v_not_words, ' ', 'gi') ~* '(^|;)\s*(set\s+constraints|prepare\s+transaction)'
    then
      raise exception 'writes are sent at COMMIT, and not by SET CONSTRAINTS or PREPARE TRANSACTION'
        using errcode = '0A000', hint = 'Leave that statement out.';
    end if;
    insert into {{own}}.intents (pid, nth, intent) values (pg_backend_pid(), 0, '{}');
    return null;
  end if;
  with sent as (delete from {{own}}.intents as i where i.pid = pg_backend_pid() returning i.nth, i.intent), known as (
    select s.nth, s.intent,
      min(s.nth) filter (where s.intent ->> 'operation' = 'delete') over (partition by s.intent ->> 'record') as deleted_at
    from sent as s)
  -- The transaction still sees a row that it has deleted, and a join may have it twice. In a table, it would be gone.
  select jsonb_agg(k.intent order by k.nth)
      filter (where k.nth > 0 and not k.intent ? 'submit' and k.nth <= coalesce(k.deleted_at, k.nth)),
    max(k.intent ->> 'submit')
  into v_intents, v_submitted from known as k;
  if v_intents is null then
    return null;
  elsif {{own}}.is_queued() then
    perform {{own}}.enqueue(v_intents, coalesce(v_submitted, {{own}}.new_set_id()));
  else
    perform {{own}}.send(v_intents, v_submitted);
  end if;
  return null;
end $send_intents$;

-- enqueue(intents, id of a set): commits them to the outbox, and wakes the proxy.
create or replace function {{own}}.enqueue(p_intents jsonb, p_set text) returns void language plpgsql as $enqueue$
declare
  v_bytes integer := octet_length(p_intents::text);
  v_waiting record;
begin
  if v_bytes > {{most_bytes}} then
    raise exception 'a transaction writes at most % MB', {{most_bytes}} / 1048576 using errcode = '54000',
      hint = 'Write the rest in another transaction.';
  elsif exists (select from jsonb_array_elements(p_intents) as i (intent) where octet_length(i.intent::text) > 4000000) then
    raise exception 'a row has at most 4 MB' using errcode = '54000';
  end if;
  select coalesce(sum(o.rows), 0) as rows, coalesce(sum(o.bytes), 0) as bytes into v_waiting
  from {{own}}.outbox as o where o.state = 'queued';
  if v_waiting.rows >= 10000 or v_waiting.bytes >= {{most_bytes}} then
    raise exception '% rows wait already for Basetide: nothing was written', v_waiting.rows using errcode = '53400',
      hint = 'Repeat the transaction when fewer wait.';
  end if;
  insert into {{own}}.outbox (set_id, role, application_name, note, typecast, types, operations, rows, bytes)
  values (p_set, session_user, current_setting('application_name'),
    left(coalesce({{own}}.setting('basetide.note'), ''), 1000), {{own}}.is_on('basetide.typecast'),
    coalesce({{own}}.types_of(p_intents), '{}'), p_intents, jsonb_array_length(p_intents), v_bytes);
  notify basetide_outbox;
  raise notice 'basetide-sql: queued' using
    detail = format('The change set %s is committed here, and not yet in Airtable, which gets it in the background.', p_set),
    hint = format('%I.log shows what became of it.', {{write_text}});
end $enqueue$;

-- types_of(intents): the types of the fields of their tables, by id.
create or replace function {{own}}.types_of(p_intents jsonb) returns jsonb language plpgsql stable as $types_of$
begin
  -- In PL/pgSQL, whose plans are kept for the session.
  return (
    select jsonb_object_agg(f.field_id, f.type) from {{own}}.fields as f
    where f.is_writable and f.table_id in (select o ->> 'table' from jsonb_array_elements(p_intents) as o));
end $types_of$;

do $trigger$
begin
  if not exists (select from pg_trigger where tgrelid = '{{own}}.intents'::regclass and tgname = 'send_intents') then
    -- Once in a transaction: after the first is rolled back, so are all others, and the next is the first.
    create constraint trigger send_intents after insert on {{own}}.intents deferrable initially deferred
      for each row when (new.nth = 1) execute function {{own}}.send_intents();
  end if;
  if not exists (select from pg_trigger where tgrelid = '{{own}}.intents'::regclass and tgname = 'send_last') then
    create constraint trigger send_last after insert on {{own}}.intents deferrable initially deferred
      for each row when (new.nth = 0) execute function {{own}}.send_intents();
  end if;
end $trigger$;

-- view_of(table id): the name of its view; null if there is none.
create or replace function {{own}}.view_of(p_table text) returns name language sql stable as $view_of$
  select c.relname from pg_trigger as g join pg_class as c on c.oid = g.tgrelid
  where g.tgfoid = '{{own}}.write_row()'::regprocedure
    and g.tgargs = convert_to(p_table, 'UTF8') || '\x00'::bytea
$view_of$;

-- send(intents, id of a set): has them made in Airtable; with an id, in the background as that set. Returns
-- {set, records}; raises what Airtable says.
create or replace function {{own}}.send(p_intents jsonb, p_submitted text default null) returns jsonb
language plpgsql as $send$
declare
  v_request jsonb := jsonb_build_object(
    'kind', 'write', 'submitted', p_submitted, 'user', session_user, 'application', current_setting('application_name'),
    'note', {{own}}.setting('basetide.note'), 'typecast', {{own}}.is_on('basetide.typecast'),
    'operations', p_intents, 'types', {{own}}.types_of(p_intents));
  v_answer jsonb;
  v_table text;
  v_column text;
begin
  v_answer := {{own}}.ask(v_request);
  if (v_answer ->> 'is_pending')::boolean then
    raise warning 'basetide-sql: pending' using detail = 'Airtable has made the change, and SQL does not show it yet.';
  end if;
  if v_answer ->> 'sqlstate' is null then
    return v_answer;
  end if;
  v_table := {{own}}.view_of(v_answer ->> 'table');
  -- Some messages name the field.
  select f.name into v_column from {{own}}.fields as f
  where f.table_id = v_answer ->> 'table' and (f.field_id = v_answer ->> 'field'
    or position(format('"%s"', f.source_name) in v_answer ->> 'message') > 0)
  order by f.field_id = v_answer ->> 'field' desc, length(f.source_name) desc limit 1;
  raise exception using errcode = v_answer ->> 'sqlstate', message = v_answer ->> 'message',
    detail = coalesce(v_answer ->> 'detail', ''), hint = coalesce(v_answer ->> 'hint', ''),
    schema = case when v_table is null then '' else {{write_text}} end, table = coalesce(v_table, ''),
    column = coalesce(v_column, '');
end $send$;

-- ask(request): asks the endpoint, on a connection that the session keeps.
create or replace function {{own}}.ask(p_request jsonb) returns jsonb language plpgsql as $ask$
declare
  v_name text := {{write_text}};
  v_is_open boolean := coalesce({{write_text}} = any ({{dblink}}.dblink_get_connections()), false);
  v_is_sent boolean := false;
  v_error text;
  v_request text := p_request::text;
begin
  -- The message has its length and a zero, too.
  if octet_length(v_request) + 5 > {{most_bytes}} then
    raise exception 'the writes of a transaction are longer than % MB: nothing was sent to Airtable', {{most_bytes}} / 1048576
      using errcode = '54000', hint = 'Write fewer rows in a transaction.';
  end if;
  if v_is_open then
    begin
      -- Notices that the endpoint has closed the connection: then nothing can be sent.
      perform {{dblink}}.dblink_is_busy(v_name);
      v_is_sent := {{dblink}}.dblink_send_query(v_name, v_request) = 1;
    exception when others then null;
    end;
    if not v_is_sent then
      begin
        perform {{dblink}}.dblink_disconnect(v_name);
      exception when others then null;
      end;
    end if;
  end if;
  if not v_is_sent then
    begin
      perform {{dblink}}.dblink_connect(v_name, (select e.connection from {{own}}.endpoint as e));
    exception when others then
      get stacked diagnostics v_error = pg_exception_detail;
      raise exception 'Basetide cannot be reached: nothing was sent to Airtable' using errcode = '08006',
        detail = coalesce(nullif(v_error, ''), sqlerrm), hint = 'It is safe to repeat the statement.';
    end;
  end if;
  begin
    if not v_is_sent then
      perform {{dblink}}.dblink_send_query(v_name, v_request);
    end if;
    return {{own}}.answer_of(v_name)::jsonb;
  exception when query_canceled then
    -- The endpoint sends nothing more.
    perform {{dblink}}.dblink_disconnect(v_name);
    raise;
  when sqlstate 'BT001' then
    v_error := sqlerrm;
    perform {{dblink}}.dblink_disconnect(v_name);
    raise exception 'Basetide did not take the request: nothing was sent to Airtable' using errcode = '08006',
      detail = v_error, hint = 'It is safe to repeat the statement.';
  when others then
    v_error := sqlerrm;
    perform {{dblink}}.dblink_disconnect(v_name);
    raise exception 'the connection to Basetide was lost: Airtable may have made the change'
      using errcode = '08007', detail = v_error, hint = format('%I.log shows what became of it.', {{write_text}});
  end;
end $ask$;

-- answer_of(connection): waits for the answer to what was sent. The wait can be canceled: dblink's own can since Postgres 17.
-- The keepalives of the connection end a wait for an endpoint that is gone.
create or replace function {{own}}.answer_of(p_name text) returns text language plpgsql as $answer_of$
declare
  v_from timestamptz := clock_timestamp();
  v_polls boolean := current_setting('server_version_num')::integer < 170000;
  v_answer text;
  v_ms double precision := 0.2;
begin
  while v_polls and {{dblink}}.dblink_is_busy(p_name) = 1 loop
    perform pg_sleep(v_ms / 1000);
    -- A single call of Airtable takes a fraction of a second.
    v_ms := least(v_ms * 1.2, case when clock_timestamp() < v_from + interval '1 s' then 1 else 5 end);
  end loop;
  select r.answer into v_answer from {{dblink}}.dblink_get_result(p_name) as r (answer text);
  perform from {{dblink}}.dblink_get_result(p_name) as r (answer text);
  if v_answer is null then
    raise exception 'no answer' using errcode = '08006';
  end if;
  return v_answer;
end $answer_of$;

-- log_rows(): the latest writes of this role.
create or replace function {{own}}.log_rows() returns table (
  "set" text, "at" timestamptz, "user" text, application_name text, "table" text, record text, operation text,
  state text, error text
) language plpgsql security definer set search_path = pg_catalog, pg_temp as $log_rows$
#variable_conflict use_column
begin
  if {{own}}.is_queued() then
    return query
    select o.set_id, o.at, o.role::text, o.application_name, coalesce({{own}}.view_of(i.intent ->> 'table')::text, i.intent ->> 'table'),
      coalesce(r.result ->> 'record', i.intent ->> 'record'), i.intent ->> 'operation',
      coalesce(r.result ->> 'state', 'queued'), coalesce(r.result ->> 'error', '')
    from (select * from {{own}}.outbox as q where q.role = session_user order by q.nth desc limit 1000) as o
      cross join jsonb_array_elements(o.operations) with ordinality as i (intent, nth)
      cross join lateral (select o.results -> (i.nth::integer - 1)) as r (result)
    order by o.nth desc, i.nth limit 1000;
  else
    return query
    select r.set, r.at, r.user, r.application_name, coalesce({{own}}.view_of(r.table)::text, r.table), r.record, r.operation,
      r.state, r.error
    from jsonb_to_recordset(
        {{own}}.ask(jsonb_build_object('kind', 'log', 'user', session_user)) -> 'rows')
      as r ("set" text, "at" timestamptz, "user" text, application_name text, "table" text, record text, operation text,
        state text, error text);
  end if;
end $log_rows$;

create or replace view {{write}}.log as select * from {{own}}.log_rows();
comment on view {{write}}.log is 'What became of the latest writes of this role, the newest first.';

-- upsert(table, rows, merge on): changes the row that has the values of a given one in these columns, or inserts it.
-- Returns the number of rows. Runs with the rights of whoever calls it, on the view.
create or replace function {{write}}.upsert(p_table text, p_rows jsonb, p_merge_on text[]) returns integer
language plpgsql set search_path = pg_catalog, pg_temp as $upsert$
declare
  v_view regclass := to_regclass(format('{{write}}.%I', p_table));
  v_columns text[];
  v_where text;
  v_unknown text;
  v_row jsonb;
  v_count integer;
begin
  if v_view is null then
    raise exception 'there is no view to write to for "%"', p_table using errcode = '42P01';
  elsif coalesce(cardinality(p_merge_on), 0) = 0 or jsonb_typeof(p_rows) <> 'array' then
    raise exception 'upsert needs an array of rows, and the columns to merge on' using errcode = '22023';
  end if;
  if exists (
    select from jsonb_array_elements(p_rows) as r (value)
    group by array(select r.value -> k from unnest(p_merge_on) as k) having count(*) > 1
  ) then
    raise exception 'two of the rows have the same values in %', array_to_string(p_merge_on, ', ') using errcode = '21000';
  end if;
  select string_agg(format('t.%1$I = r.%1$I', k), ' and ') into v_where from unnest(p_merge_on) as k;
  for v_row in select r.value from jsonb_array_elements(p_rows) as r (value) loop
    v_columns := array(select jsonb_object_keys(v_row));
    select k into v_unknown from unnest(v_columns || p_merge_on) as k
    where not v_row ? k or not exists (
      select from pg_attribute as a where a.attrelid = v_view and a.attname = k and a.attnum > 0)
    limit 1;
    if v_unknown is not null then
      raise exception 'the column "%" does not exist in %, or in a row', v_unknown, v_view using errcode = '42703';
    end if;
    execute format('update %1$s as t set %2$s from jsonb_populate_record(null::%1$s, $1) as r where %3$s', v_view,
      (select string_agg(format('%1$I = r.%1$I', k), ', ') from unnest(v_columns) as k), v_where) using v_row;
    get diagnostics v_count = row_count;
    if v_count > 1 then
      raise exception '% rows have the values of one', v_count using errcode = '21000', detail = v_row::text;
    elsif v_count = 0 then
      execute format('insert into %1$s (%2$s) select %2$s from jsonb_populate_record(null::%1$s, $1)', v_view,
        (select string_agg(quote_ident(k), ', ') from unnest(v_columns) as k)) using v_row;
    end if;
  end loop;
  return jsonb_array_length(p_rows);
end $upsert$;

-- attach(table, record, column, url, filename): adds a file to a cell; Airtable downloads it. Runs with the rights of
-- whoever calls it, on the view.
create or replace function {{write}}.attach(
  p_table text, p_record text, p_column text, p_url text, p_filename text default null
) returns void language plpgsql set search_path = pg_catalog, pg_temp as $attach$
declare
  v_view regclass := to_regclass(format('{{write}}.%I', p_table));
  v_count integer;
begin
  if v_view is null then
    raise exception 'there is no view to write to for "%"', p_table using errcode = '42P01';
  elsif not exists (
    select from pg_attribute as a where a.attrelid = v_view and a.attname = p_column and a.attnum > 0) then
    raise exception 'the column "%" does not exist in %', p_column, v_view using errcode = '42703';
  end if;
  perform set_config(
    'basetide.filenames', coalesce(jsonb_build_object(p_url, nullif(p_filename, ''))::text, ''), true);
  execute format('update %1$s as t set %2$I = t.%2$I || array[$1] where t.id = $2', v_view, p_column)
  using p_url, p_record;
  get diagnostics v_count = row_count;
  perform set_config('basetide.filenames', '', true);
  if v_count = 0 then
    raise exception 'the record % does not exist in %', p_record, v_view using errcode = 'P0002';
  end if;
end $attach$;

-- new_set_id(): an id of a change set.
create or replace function {{own}}.new_set_id() returns text language plpgsql as $new_set_id$
declare
  v_random bytea := uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid());
begin
  -- Two bytes of a UUID are not random.
  return (
    select 'chs_' || string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + (get_byte(v_random, n) & 31), 1), '')
    from (select n from generate_series(0, 31) as n where n % 16 not in (6, 8) limit 20) as r);
end $new_set_id$;

-- submit(): at COMMIT, the writes of this transaction become a change set, which is carried out in the background.
-- Returns its id.
create or replace function {{write}}.submit() returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $submit$
declare
  v_id text := (
    select i.intent ->> 'submit' from {{own}}.intents as i where i.pid = pg_backend_pid() and i.intent ? 'submit');
begin
  if v_id is not null then
    return v_id;
  elsif {{own}}.mode() = 'at_once' then
    raise exception 'in the mode at_once there is nothing to submit: each statement is sent by itself' using errcode = '0A000',
      hint = 'Set basetide.writes to at_commit first.';
  end if;
  v_id := {{own}}.new_set_id();
  perform {{own}}.intend(jsonb_build_object('submit', v_id));
  return v_id;
end $submit$;

revoke all on all functions in schema {{own}} from public;
-- The view calls it with the rights of whoever reads the view; the schema is closed to them.
grant execute on function {{own}}.log_rows() to public;
