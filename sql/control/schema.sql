create table accepted_keys (
  source_base_id text not null,
  key_hash text not null,
  accepted_at timestamp with time zone not null default now(),
  constraint accepted_keys_pkey PRIMARY KEY (source_base_id, key_hash)
) with (fillfactor=50);
CREATE INDEX accepted_keys_accepted_idx ON accepted_keys (accepted_at);

create table account_members (
  account_id text not null,
  user_id text not null,
  role text not null,
  created_at timestamp with time zone not null default now(),
  constraint account_members_pkey PRIMARY KEY (account_id, user_id),
  constraint account_members_role_check CHECK (role = ANY (ARRAY['owner'::text, 'editor'::text, 'viewer'::text])),
  constraint account_members_account_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  constraint account_members_user_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX account_members_own_key ON account_members (user_id) WHERE (role = 'owner'::text);
CREATE UNIQUE INDEX account_members_owner_key ON account_members (account_id) WHERE (role = 'owner'::text);
CREATE INDEX account_members_user_idx ON account_members (user_id);

create table account_moves (
  account_id text not null,
  direction text not null,
  state text not null default 'moving'::text,
  email text not null,
  installation text not null,
  base_ids text[] not null default '{}'::text[],
  user_ids text[] not null default '{}'::text[],
  quota_keys text[] not null default '{}'::text[],
  began_at timestamp with time zone not null default now(),
  ended_at timestamp with time zone,
  constraint account_moves_direction_check CHECK (direction = ANY (ARRAY['out'::text, 'in'::text])),
  constraint account_moves_pkey PRIMARY KEY (account_id),
  constraint account_moves_state_check CHECK (state = ANY (ARRAY['moving'::text, 'moved'::text]))
);

create table accounts (
  id text not null,
  email text not null,
  is_operator boolean not null default false,
  created_at timestamp with time zone not null default now(),
  region text,
  status_token text,
  constraint accounts_pkey PRIMARY KEY (id),
  constraint accounts_status_key UNIQUE (status_token)
);
CREATE UNIQUE INDEX accounts_email_key ON accounts (lower(email));

create table alert_clock (
  checked_at timestamp with time zone not null
);
CREATE UNIQUE INDEX alert_clock_one_row ON alert_clock ((true));
alter table alert_clock replica identity full;

create table alert_messages (
  id text not null,
  job_id uuid not null default gen_random_uuid(),
  account_id text not null,
  user_id text,
  webhook_id text,
  at timestamp with time zone not null,
  subject text not null,
  state text not null default 'waiting'::text,
  attempts integer not null default 0,
  error text,
  queued_at timestamp with time zone,
  ended_at timestamp with time zone,
  constraint alert_messages_pkey PRIMARY KEY (id),
  constraint alert_messages_state_check CHECK (state = ANY (ARRAY['waiting'::text, 'sent'::text, 'given_up'::text, 'dropped'::text])),
  constraint alert_messages_target_check CHECK (num_nonnulls(user_id, webhook_id) = 1),
  constraint alert_messages_account_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  constraint alert_messages_member_fkey FOREIGN KEY (account_id, user_id) REFERENCES account_members(account_id, user_id) ON DELETE CASCADE,
  constraint alert_messages_webhook_fkey FOREIGN KEY (webhook_id) REFERENCES alert_webhooks(id) ON DELETE CASCADE
);
CREATE INDEX alert_messages_account_idx ON alert_messages (account_id, at DESC);
CREATE INDEX alert_messages_at_idx ON alert_messages (at);
CREATE INDEX alert_messages_unqueued_idx ON alert_messages (at) WHERE (queued_at IS NULL);
CREATE INDEX alert_messages_user_idx ON alert_messages (user_id, at);
CREATE INDEX alert_messages_webhook_idx ON alert_messages (webhook_id, at);
comment on column alert_messages.state is 'given_up: all attempts failed; dropped: its target or its subject was deleted';

create table alert_notices (
  alert_id bigint not null,
  account_id text not null,
  user_id text,
  webhook_id text,
  message_id text,
  constraint alert_notices_key UNIQUE NULLS NOT DISTINCT (alert_id, user_id, webhook_id),
  constraint alert_notices_target_check CHECK (num_nonnulls(user_id, webhook_id) = 1),
  constraint alert_notices_alert_fkey FOREIGN KEY (alert_id) REFERENCES alerts(id) ON DELETE CASCADE,
  constraint alert_notices_member_fkey FOREIGN KEY (account_id, user_id) REFERENCES account_members(account_id, user_id) ON DELETE CASCADE,
  constraint alert_notices_message_fkey FOREIGN KEY (message_id) REFERENCES alert_messages(id) ON DELETE CASCADE,
  constraint alert_notices_webhook_fkey FOREIGN KEY (webhook_id) REFERENCES alert_webhooks(id) ON DELETE CASCADE
);
CREATE INDEX alert_notices_message_idx ON alert_notices (message_id);
CREATE INDEX alert_notices_pending_idx ON alert_notices (alert_id) WHERE (message_id IS NULL);
CREATE INDEX alert_notices_user_idx ON alert_notices (user_id);
CREATE INDEX alert_notices_webhook_idx ON alert_notices (webhook_id);
alter table alert_notices replica identity full;

create table alert_preferences (
  account_id text not null,
  user_id text not null,
  kinds text[] not null,
  constraint alert_preferences_pkey PRIMARY KEY (account_id, user_id),
  constraint alert_preferences_member_fkey FOREIGN KEY (account_id, user_id) REFERENCES account_members(account_id, user_id) ON DELETE CASCADE
);

create table alert_states (
  base_id text,
  workspace_id text,
  kind text not null,
  state text not null default 'off'::text,
  since timestamp with time zone not null,
  told text,
  reported_at timestamp with time zone,
  times integer not null default 0,
  cursor bigint,
  constraint alert_states_key UNIQUE NULLS NOT DISTINCT (base_id, workspace_id, kind),
  constraint alert_states_subject_check CHECK (num_nonnulls(base_id, workspace_id) = 1),
  constraint alert_states_base_fkey FOREIGN KEY (base_id) REFERENCES bases(id) ON DELETE CASCADE,
  constraint alert_states_workspace_fkey FOREIGN KEY (workspace_id) REFERENCES workspaces(id) ON DELETE CASCADE
);
CREATE INDEX alert_states_workspace_idx ON alert_states (workspace_id) WHERE (workspace_id IS NOT NULL);
alter table alert_states replica identity full;

create table alert_webhooks (
  id text not null,
  account_id text not null,
  name text not null,
  form text not null,
  host text not null,
  encrypted_url text not null,
  encrypted_secret text not null,
  kinds text[] not null,
  is_on boolean not null default true,
  created_at timestamp with time zone not null default now(),
  delivered_at timestamp with time zone,
  failing_since timestamp with time zone,
  error text,
  constraint alert_webhooks_form_check CHECK (form = ANY (ARRAY['json'::text, 'slack'::text])),
  constraint alert_webhooks_pkey PRIMARY KEY (id),
  constraint alert_webhooks_account_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE
);
CREATE INDEX alert_webhooks_account_idx ON alert_webhooks (account_id, created_at);
comment on column alert_webhooks.encrypted_secret is 'signs its messages';

create table alerts (
  id bigint generated always as identity,
  account_id text not null,
  base_id text,
  workspace_id text,
  kind text not null,
  at timestamp with time zone not null,
  facts jsonb not null,
  constraint alerts_kind_check CHECK (kind = ANY (ARRAY['red'::text, 'recovered'::text, 'needs_attention'::text, 'call_budget'::text, 'new_table'::text, 'breaking_change'::text, 'schema_changed'::text])),
  constraint alerts_pkey PRIMARY KEY (id),
  constraint alerts_account_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  constraint alerts_base_fkey FOREIGN KEY (base_id) REFERENCES bases(id) ON DELETE CASCADE,
  constraint alerts_workspace_fkey FOREIGN KEY (workspace_id) REFERENCES workspaces(id) ON DELETE CASCADE
);
CREATE INDEX alerts_account_idx ON alerts (account_id);
CREATE INDEX alerts_at_idx ON alerts (at);
CREATE INDEX alerts_base_idx ON alerts (base_id);
CREATE INDEX alerts_workspace_idx ON alerts (workspace_id) WHERE (workspace_id IS NOT NULL);

create table api_tokens (
  id text not null,
  account_id text not null,
  name text not null,
  prefix text not null,
  token_hash text not null,
  scopes text[] not null,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone,
  last_used_at timestamp with time zone,
  created_by text,
  constraint api_tokens_hash_key UNIQUE (token_hash),
  constraint api_tokens_pkey PRIMARY KEY (id),
  constraint api_tokens_scopes_check CHECK (cardinality(scopes) > 0 AND scopes <@ ARRAY['read'::text, 'write'::text, 'credentials'::text]),
  constraint api_tokens_account_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  constraint api_tokens_user_fkey FOREIGN KEY (created_by) REFERENCES users(id) ON DELETE CASCADE
);
CREATE INDEX api_tokens_account_idx ON api_tokens (account_id);
comment on column api_tokens.token_hash is 'SHA-256 of the token, in hex; a token is 32 random bytes, so no salt is needed';
comment on column api_tokens.last_used_at is 'to the hour, so that not every use of a token is a write';

create unlogged table attempts (
  key text not null,
  count integer not null,
  ends_at timestamp with time zone not null,
  constraint attempts_pkey PRIMARY KEY (key)
) with (fillfactor=50);
CREATE INDEX attempts_ends_idx ON attempts (ends_at);

create table audit_log (
  id bigint generated always as identity,
  at timestamp with time zone not null default clock_timestamp(),
  account_id text,
  actor_kind text not null,
  actor text not null,
  action text not null,
  subject text,
  details jsonb not null default '{}'::jsonb,
  period timestamp with time zone,
  constraint audit_log_actor_check CHECK (actor_kind = ANY (ARRAY['user'::text, 'token'::text, 'operator'::text, 'cli'::text, 'system'::text])),
  constraint audit_log_details_check CHECK (jsonb_typeof(details) = 'object'::text),
  constraint audit_log_pkey PRIMARY KEY (id)
);
CREATE INDEX audit_log_account_idx ON audit_log (account_id, id DESC);
CREATE INDEX audit_log_at_idx ON audit_log (at);
CREATE UNIQUE INDEX audit_log_period_key ON audit_log (account_id, action, subject, actor, period) WHERE (period IS NOT NULL);

create table base_crashes (
  base_id text not null,
  crashes integer not null default 0,
  counted_until timestamp with time zone not null default '-infinity'::timestamp with time zone,
  suspected_at timestamp with time zone,
  company integer,
  quarantines integer not null default 0,
  quarantined_until timestamp with time zone,
  constraint base_crashes_pkey PRIMARY KEY (base_id),
  constraint base_crashes_base_fkey FOREIGN KEY (base_id) REFERENCES bases(id) ON DELETE CASCADE
);

create table base_days (
  base_id text not null,
  day date not null,
  lag_p50_ms real[] not null,
  lag_max_ms real[] not null,
  changed integer[] not null,
  issues integer[] not null,
  constraint base_days_pkey PRIMARY KEY (base_id, day),
  constraint base_days_base_fkey FOREIGN KEY (base_id) REFERENCES bases(id) ON DELETE CASCADE
);
CREATE INDEX base_days_day_idx ON base_days (day);

create table base_drafts (
  id text not null,
  account_id text not null,
  platform text not null,
  encrypted_api_key text,
  key_owner text,
  choices jsonb,
  choices_at timestamp with time zone,
  reports_changes boolean,
  source_base_id text,
  source_base_name text,
  source_size jsonb,
  destination jsonb,
  selection jsonb,
  encrypted_url text,
  base_id text,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint base_drafts_pkey PRIMARY KEY (id),
  constraint base_drafts_account_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  constraint base_drafts_base_fkey FOREIGN KEY (base_id) REFERENCES bases(id) ON DELETE SET NULL
);
CREATE INDEX base_drafts_account_idx ON base_drafts (account_id, updated_at);
comment on column base_drafts.key_owner is 'e-mail address of the user whose key it is, or the id if the key may not read the address; null if unknown';
comment on column base_drafts.choices is 'bases that the key can read, as the source listed them at choices_at';
comment on column base_drafts.reports_changes is 'whether the key may read the feed of changes; null if that could not be determined';
comment on column base_drafts.source_size is 'number of tables, and of records as far as a few calls could count or estimate them; sizes by table';
comment on column base_drafts.destination is 'the destination, an external one without its URL';
comment on column base_drafts.selection is 'what will be copied, as bases.selection';
comment on column base_drafts.encrypted_url is 'URL of an external destination';
comment on column base_drafts.base_id is 'the base that was created; from then on the draft holds no secret';

create table base_periods (
  id bigint generated always as identity,
  base_id text not null,
  kind text not null,
  label text not null,
  began_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  as_of timestamp with time zone,
  constraint base_periods_kind_check CHECK (kind = ANY (ARRAY['outage'::text, 'delay'::text, 'pause'::text, 'budget'::text])),
  constraint base_periods_order_check CHECK (ended_at >= began_at),
  constraint base_periods_pkey PRIMARY KEY (id),
  constraint base_periods_base_fkey FOREIGN KEY (base_id) REFERENCES bases(id) ON DELETE CASCADE
);
CREATE INDEX base_periods_base_idx ON base_periods (base_id, began_at);
CREATE INDEX base_periods_ended_idx ON base_periods (ended_at);
CREATE UNIQUE INDEX base_periods_open_key ON base_periods (base_id) WHERE (ended_at IS NULL);

create table bases (
  id text not null,
  account_id text not null,
  platform text not null,
  source_base_id text not null,
  name text not null,
  encrypted_api_key text not null,
  key_accepted_at timestamp with time zone,
  source_user_id text,
  workspace_id text,
  database_id text not null,
  schema_name text not null,
  move_database_id text,
  created_at timestamp with time zone not null default now(),
  turbo boolean not null default false,
  rapid boolean not null default false,
  live boolean not null default true,
  linked_records_as_text boolean not null default false,
  lookups_as_text boolean not null default false,
  pinned_names boolean not null default false,
  alias_days integer not null default 7,
  own_names jsonb not null default '[]'::jsonb,
  link_views boolean not null default false,
  history boolean not null default false,
  history_days integer not null default 30,
  notify boolean not null default false,
  muted_fields jsonb not null default '[]'::jsonb,
  attachment_views boolean not null default false,
  own_attachment_urls boolean not null default false,
  encrypted_attachment_key text,
  attachment_key_version integer not null default 0,
  selection jsonb,
  encrypted_hash_key text,
  unanswered_tables jsonb not null default '[]'::jsonb,
  replica_reads boolean not null default false,
  coalesce_writes boolean not null default false,
  indexes jsonb not null default '[]'::jsonb,
  is_paused boolean not null default false,
  state text not null default 'starting'::text,
  resync_requested_at timestamp with time zone,
  schema_check_requested_at timestamp with time zone,
  catch_up_requested_at timestamp with time zone,
  rests_until timestamp with time zone,
  progress jsonb,
  progress_at timestamp with time zone,
  problems jsonb not null default '[]'::jsonb,
  failing_tables jsonb not null default '[]'::jsonb,
  schema_error jsonb,
  tables jsonb not null default '[]'::jsonb,
  issue_count integer not null default 0,
  issues jsonb not null default '[]'::jsonb,
  sync_kind text,
  sync_started_at timestamp with time zone,
  sync_completed_at timestamp with time zone,
  sync_duration_ms double precision,
  attempted_at timestamp with time zone,
  error_code text,
  error_message text,
  error_since timestamp with time zone,
  recent_sweep_ms double precision[] not null default '{}'::double precision[],
  recent_rapid_ms double precision[] not null default '{}'::double precision[],
  recent_live_ms double precision[] not null default '{}'::double precision[],
  sweep_started_at timestamp with time zone,
  sweep_completed_at timestamp with time zone,
  sweep_background_ms double precision,
  replica_identity text,
  replica_epoch bigint,
  constraint bases_error_check CHECK (num_nulls(error_code, error_message, error_since) = ANY (ARRAY[0, 3])),
  constraint bases_history_days_check CHECK (history_days >= 1 AND history_days <= 3650),
  constraint bases_paused_check CHECK ((state = ANY (ARRAY['moving'::text, 'deleting'::text])) OR is_paused = (state = 'paused'::text)),
  constraint bases_pkey PRIMARY KEY (id),
  constraint bases_schema_key UNIQUE (database_id, schema_name),
  constraint bases_source_key UNIQUE (account_id, platform, source_base_id),
  constraint bases_state_check CHECK (state = ANY (ARRAY['starting'::text, 'active'::text, 'paused'::text, 'needs_attention'::text, 'moving'::text, 'deleting'::text])),
  constraint bases_sync_kind_check CHECK (sync_kind = ANY (ARRAY['first'::text, 'rebuild'::text, 'sweep'::text, 'rapid'::text, 'live'::text])),
  constraint bases_account_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint bases_database_fkey FOREIGN KEY (database_id) REFERENCES databases(id),
  constraint bases_move_database_id_fkey FOREIGN KEY (move_database_id) REFERENCES databases(id),
  constraint bases_workspace_fkey FOREIGN KEY (workspace_id) REFERENCES workspaces(id) ON DELETE SET NULL
) with (fillfactor=50);
CREATE INDEX bases_source_idx ON bases (platform, source_base_id);
CREATE INDEX bases_source_user_idx ON bases (platform, source_user_id) WHERE (source_user_id IS NOT NULL);
CREATE INDEX bases_workspace_idx ON bases (workspace_id) WHERE (workspace_id IS NOT NULL);
comment on column bases.live is 'read changes from the source''s feed, if the key allows it';
comment on column bases.pinned_names is 'tables and columns of the replica keep their names when they are renamed in the source';
comment on column bases.alias_days is 'after a rename, the old name answers for so many days';
comment on column bases.own_names is 'names that people have chosen: [{"tableId", "fieldId", "name"}], with the source''s ids; fieldId is null for a table';
comment on column bases.link_views is 'the replica has a view for each array of links: one row per link';
comment on column bases.history is 'changes of records are recorded in _sync_history, for history_days';
comment on column bases.notify is 'changes of records are sent to listeners of the channel "basetide"';
comment on column bases.muted_fields is 'fields whose issues do not count: [{"tableId", "fieldId"}], with the source''s ids';
comment on column bases.attachment_views is 'the replica has a view for each column of attachments: one row per file';
comment on column bases.own_attachment_urls is 'attachments are stored as URLs of the console, which redirect to fresh ones of the source';
comment on column bases.encrypted_attachment_key is 'signs those URLs; stored while the setting is off, for URLs handed out before';
comment on column bases.attachment_key_version is 'raised with a new key: rows signed with an older one are written again';
comment on column bases.selection is 'what is copied, by the source''s ids of tables, views and fields; null: everything';
comment on column bases.encrypted_hash_key is 'hashes the cells of fields that the selection hashes; never replaced, because hashes would no longer join';
comment on column bases.unanswered_tables is 'new tables in the source that the selection asks about: [{"id", "name"}]';
comment on column bases.replica_reads is 'reads through the proxy may be answered from the replica even without the header that requests it';
comment on column bases.coalesce_writes is 'the proxy may send writes of single records to the source in one request';
comment on column bases.indexes is 'indexes on columns of the replica''s tables: [{"tableId", "fieldId", "table", "column", "kind"}], with the source''s ids and the SQL names last seen';
comment on column bases.progress is 'the first sync or rebuild that is running: {kind, started_at, tables}';
comment on column bases.problems is 'what keeps the replica from equaling the source, as the base''s worker finds it: [{"kind", "tableId", "name", "message", "since", "nextAt"}], times in ms since 1970';
comment on column bases.failing_tables is 'the tables that cannot be read while the others are synced, as the API shows them';
comment on column bases.schema_error is 'why the schema cannot be read, if it cannot: {code, message, since}';
comment on column bases.issues is 'the largest groups of the issue_count issues, by field and reason, as the API shows them';
comment on column bases.sync_started_at is 'with kind, completed_at and duration_ms: the last sync that completed';
comment on column bases.attempted_at is 'when the last sync ended, completed or not';
comment on column bases.error_since is 'when the first of the unbroken run of failed syncs ended; null when the last one completed';
comment on column bases.recent_sweep_ms is 'durations of the last 20 completed sweeps, latest first';
comment on column bases.recent_rapid_ms is 'likewise of cycles in rapid mode';
comment on column bases.recent_live_ms is 'likewise of batches in live mode that changed something';
comment on column bases.sweep_started_at is 'with completed_at: the last full read of all records, including those in the background';
comment on column bases.sweep_background_ms is 'expected duration of a background sweep';

create table clusters (
  id text not null,
  name text not null,
  region text not null,
  location text,
  encrypted_admin_url text not null,
  public_host text not null,
  public_port integer not null,
  state text not null default 'active'::text,
  created_at timestamp with time zone not null default now(),
  timeline text,
  constraint clusters_name_key UNIQUE (name),
  constraint clusters_pkey PRIMARY KEY (id),
  constraint clusters_port_check CHECK (public_port >= 1 AND public_port <= 65535),
  constraint clusters_state_check CHECK (state = ANY (ARRAY['active'::text, 'draining'::text]))
);
comment on column clusters.state is 'draining: keeps its databases, gets no new ones';

create table databases (
  id text not null,
  account_id text not null,
  cluster_id text,
  name text not null,
  role_name text not null,
  encrypted_password text,
  encrypted_console_password text,
  encrypted_url text,
  encrypted_reader_url text,
  accepts_privileges boolean not null default false,
  external_host text,
  external_port integer,
  is_writable boolean not null default false,
  created_at timestamp with time zone not null default now(),
  connection_limit integer not null default 10,
  constraint databases_connection_limit_check CHECK (connection_limit >= 1 AND connection_limit <= 10000),
  constraint databases_pkey PRIMARY KEY (id),
  constraint databases_place_check CHECK (
CASE
    WHEN cluster_id IS NULL THEN num_nonnulls(encrypted_url, external_host, external_port) = 3 AND encrypted_password IS NULL
    ELSE num_nonnulls(encrypted_url, external_host, external_port) = 0 AND encrypted_password IS NOT NULL
END),
  constraint databases_reader_check CHECK (
CASE
    WHEN cluster_id IS NULL THEN encrypted_console_password IS NULL
    ELSE encrypted_reader_url IS NULL AND NOT accepts_privileges
END),
  constraint databases_account_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint databases_cluster_fkey FOREIGN KEY (cluster_id) REFERENCES clusters(id)
);
CREATE INDEX databases_account_idx ON databases (account_id);
CREATE UNIQUE INDEX databases_external_key ON databases (external_host, external_port, name) WHERE (cluster_id IS NULL);
CREATE UNIQUE INDEX databases_hosted_key ON databases (cluster_id, name) WHERE (cluster_id IS NOT NULL);
comment on column databases.encrypted_console_password is 'of the role that the console logs in with; null: it gets one when it is next needed';
comment on column databases.encrypted_reader_url is 'URL of a customer''s own database with which members without the right to see credentials read it';
comment on column databases.accepts_privileges is 'its owner has confirmed a URL whose role has more rights than its own database, such as a superuser''s';
comment on column databases.connection_limit is 'connections that the role of a hosted database may open';

create table installation (
  id text not null,
  made_at timestamp with time zone not null default now(),
  backed_up_at timestamp with time zone,
  constraint installation_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX installation_one_row ON installation ((true));

create table installed_functions (
  version text not null,
  signatures text[] not null,
  installed_at timestamp with time zone not null default now()
);
CREATE UNIQUE INDEX installed_functions_one_row ON installed_functions ((true));
alter table installed_functions replica identity full;

create table invitations (
  id text not null,
  account_id text not null,
  email text not null,
  role text not null,
  token_hash text not null,
  invited_by text,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone not null,
  constraint invitations_email_key UNIQUE (account_id, email),
  constraint invitations_hash_key UNIQUE (token_hash),
  constraint invitations_pkey PRIMARY KEY (id),
  constraint invitations_role_check CHECK (role = ANY (ARRAY['editor'::text, 'viewer'::text])),
  constraint invitations_account_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  constraint invitations_inviter_fkey FOREIGN KEY (invited_by) REFERENCES users(id) ON DELETE SET NULL
);
comment on column invitations.token_hash is 'SHA-256 of the link''s token, in hex';

create table job_holders (
  id text not null,
  seen_at timestamp with time zone not null,
  constraint job_holders_pkey PRIMARY KEY (id)
) with (fillfactor=50);

create table live_feeds (
  base_id text not null,
  state text not null default 'making'::text,
  reason text not null default ''::text,
  refused_at timestamp with time zone,
  off_since timestamp with time zone,
  retry_at timestamp with time zone,
  webhook_id text,
  encrypted_secret text,
  cursor bigint not null default 1,
  notification_url text,
  expires_at timestamp with time zone,
  gap_since timestamp with time zone,
  notified_at timestamp with time zone,
  missed_notification_at timestamp with time zone,
  checked_at timestamp with time zone,
  read_at timestamp with time zone,
  due_at timestamp with time zone,
  changed_at timestamp with time zone,
  waiting integer not null default 0,
  waiting_since timestamp with time zone,
  missed bigint not null default 0,
  missed_at timestamp with time zone,
  compared_at timestamp with time zone,
  drifted_since timestamp with time zone,
  constraint live_feeds_pkey PRIMARY KEY (base_id),
  constraint live_feeds_state_check CHECK (state = ANY (ARRAY['making'::text, 'on'::text, 'refused'::text, 'failing'::text])),
  constraint live_feeds_webhook_check CHECK ((webhook_id IS NULL) = (encrypted_secret IS NULL)),
  constraint live_feeds_base_fkey FOREIGN KEY (base_id) REFERENCES bases(id) ON DELETE CASCADE
) with (fillfactor=50);

create table moved_bases (
  base_id text not null,
  platform text not null,
  source_base_id text not null,
  proxy_url text,
  moved_at timestamp with time zone not null default now(),
  constraint moved_bases_pkey PRIMARY KEY (base_id)
);
CREATE INDEX moved_bases_source_idx ON moved_bases (platform, source_base_id);

create unlogged table processes (
  id text not null,
  role text not null,
  version text not null,
  host text not null,
  pid integer not null,
  started_at timestamp with time zone not null,
  seen_at timestamp with time zone not null,
  bases integer not null default 0,
  capacity integer not null default 0,
  joined_at timestamp with time zone not null default now(),
  constraint processes_pkey PRIMARY KEY (id),
  constraint processes_role_check CHECK (role = ANY (ARRAY['worker'::text, 'proxy'::text, 'console'::text]))
) with (fillfactor=50);

create table quota_blocks (
  key text not null,
  reason text not null,
  blocked_at timestamp with time zone not null,
  blocked_until timestamp with time zone not null,
  constraint quota_blocks_pkey PRIMARY KEY (key),
  constraint quota_blocks_reason_known CHECK (reason = ANY (ARRAY['rate_limited'::text, 'billing_limit'::text]))
);

create table quota_callers (
  key text not null,
  day date not null,
  caller text not null,
  calls integer[] not null,
  constraint quota_callers_pkey PRIMARY KEY (key, day, caller)
) with (fillfactor=80);
CREATE INDEX quota_callers_day_idx ON quota_callers (day);

create table quota_calls (
  key text not null,
  month date not null,
  sync bigint not null default 0,
  client bigint not null default 0,
  constraint quota_calls_pkey PRIMARY KEY (key, month)
) with (fillfactor=70);

create table quota_days (
  key text not null,
  day date not null,
  sync integer[] not null,
  client integer[] not null,
  constraint quota_days_pkey PRIMARY KEY (key, day)
) with (fillfactor=50);
CREATE INDEX quota_days_day_idx ON quota_days (day);

create unlogged table quota_epochs (
  is_only boolean not null default true,
  opened_at double precision not null,
  constraint quota_epochs_one_row CHECK (is_only),
  constraint quota_epochs_pkey PRIMARY KEY (is_only)
);

create table quota_holders (
  session text not null,
  name text not null,
  owed integer not null default 0,
  seen_at double precision not null,
  heard_at double precision not null,
  owed_until double precision not null default 0,
  constraint quota_holders_pkey PRIMARY KEY (session)
) with (fillfactor=50);
CREATE INDEX quota_holders_name_idx ON quota_holders (name);

create unlogged table quota_keys (
  key text not null,
  throttled integer,
  blocked_until double precision not null default 0,
  refused_at double precision[] not null default '{}'::double precision[],
  calls_at_refusal bigint not null default 0,
  user_id text,
  constraint quota_keys_pkey PRIMARY KEY (key)
) with (fillfactor=50);

create table quota_kinds (
  key text not null,
  month date not null,
  kind text not null,
  calls bigint not null,
  constraint quota_kinds_pkey PRIMARY KEY (key, month, kind)
) with (fillfactor=70);

create unlogged table quota_minutes (
  key text not null,
  minute timestamp with time zone not null,
  sync integer not null default 0,
  client integer not null default 0,
  constraint quota_minutes_pkey PRIMARY KEY (key, minute)
) with (fillfactor=70);

create unlogged table quota_permits (
  key text not null,
  number integer not null,
  session text,
  life integer,
  kind text,
  most integer,
  rests_until double precision not null,
  constraint quota_permits_pkey PRIMARY KEY (key, number)
) with (fillfactor=50);

create table quota_throttled (
  key text not null,
  account_id text not null default ''::text,
  since timestamp with time zone not null,
  until timestamp with time zone not null,
  is_certain boolean not null,
  constraint quota_throttled_pkey PRIMARY KEY (key, account_id)
);

create unlogged table quota_wants (
  key text not null,
  id bigint not null,
  session text not null,
  life integer not null,
  kind text not null,
  most integer not null,
  since double precision not null,
  constraint quota_wants_pkey PRIMARY KEY (key, id)
);

create table rate_limits (
  id text not null,
  key text not null,
  count integer not null,
  last_request double precision not null,
  constraint rate_limits_key_key UNIQUE (key),
  constraint rate_limits_pkey PRIMARY KEY (id)
);
comment on column rate_limits.last_request is 'ms since 1970';

create table repairs (
  base_id text not null,
  table_ref text not null,
  record_id text not null,
  recorded_at timestamp with time zone not null default clock_timestamp(),
  attempts integer not null default 0,
  due_at timestamp with time zone not null default now(),
  unsettled integer not null default 0,
  constraint repairs_pkey PRIMARY KEY (base_id, table_ref, record_id),
  constraint repairs_base_fkey FOREIGN KEY (base_id) REFERENCES bases(id) ON DELETE CASCADE
);
CREATE INDEX repairs_due_idx ON repairs (due_at);
CREATE INDEX repairs_unsettled_idx ON repairs (base_id) WHERE (unsettled > 0);

create table requests (
  id text not null,
  account_id text not null,
  requested_by text,
  kind text not null,
  database_id text,
  region text,
  message text not null default ''::text,
  state text not null default 'open'::text,
  answer text not null default ''::text,
  created_at timestamp with time zone not null default now(),
  decided_at timestamp with time zone,
  decided_by text,
  constraint requests_decided_check CHECK ((state = 'open'::text) = (decided_at IS NULL)),
  constraint requests_kind_check CHECK (kind = ANY (ARRAY['region'::text, 'writable'::text, 'shared_database'::text, 'other'::text])),
  constraint requests_pkey PRIMARY KEY (id),
  constraint requests_state_check CHECK (state = ANY (ARRAY['open'::text, 'approved'::text, 'denied'::text])),
  constraint requests_subject_check CHECK ((kind = 'writable'::text) = (database_id IS NOT NULL) AND (kind = 'region'::text) = (region IS NOT NULL)),
  constraint requests_account_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  constraint requests_database_fkey FOREIGN KEY (database_id) REFERENCES databases(id) ON DELETE CASCADE
);
CREATE INDEX requests_account_idx ON requests (account_id, created_at);
CREATE UNIQUE INDEX requests_open_key ON requests (account_id, kind, COALESCE(database_id, ''::text)) WHERE (state = 'open'::text);

create table saved_queries (
  id text not null,
  account_id text not null,
  base_id text not null,
  name text not null,
  sql text not null,
  updated_at timestamp with time zone not null default now(),
  constraint saved_queries_name_key UNIQUE (base_id, name),
  constraint saved_queries_pkey PRIMARY KEY (id),
  constraint saved_queries_account_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  constraint saved_queries_base_fkey FOREIGN KEY (base_id) REFERENCES bases(id) ON DELETE CASCADE
);
CREATE INDEX saved_queries_account_idx ON saved_queries (account_id);

create table schema_changes (
  id bigint generated always as identity,
  base_id text not null,
  seen_at timestamp with time zone not null default now(),
  kind text not null,
  severity text not null default 'additive'::text,
  table_name text not null,
  field_name text,
  before jsonb,
  after jsonb,
  constraint schema_changes_kind_check CHECK (kind = ANY (ARRAY['table_added'::text, 'table_dropped'::text, 'table_renamed'::text, 'table_rebuilt'::text, 'field_added'::text, 'field_dropped'::text, 'field_renamed'::text, 'field_retyped'::text, 'table_waiting'::text])),
  constraint schema_changes_pkey PRIMARY KEY (id),
  constraint schema_changes_severity_check CHECK (severity = ANY (ARRAY['additive'::text, 'rename'::text, 'breaking'::text])),
  constraint schema_changes_base_fkey FOREIGN KEY (base_id) REFERENCES bases(id) ON DELETE CASCADE
);
CREATE INDEX schema_changes_base_idx ON schema_changes (base_id, id DESC);

create table sessions (
  id text not null,
  user_id text not null,
  token text not null,
  expires_at timestamp with time zone not null,
  ip_address text,
  user_agent text,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  account_id text,
  constraint sessions_pkey PRIMARY KEY (id),
  constraint sessions_token_key UNIQUE (token),
  constraint sessions_account_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE SET NULL,
  constraint sessions_user_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);
CREATE INDEX sessions_user_idx ON sessions (user_id);
comment on column sessions.token is 'useless alone: the cookie carries it signed with a key derived from SECRET_KEY';
comment on column sessions.account_id is 'the account that the session shows; null: the user''s own';

create table source_tables (
  base_id text not null,
  table_id text not null,
  primary_field_id text not null,
  fields jsonb not null,
  name text not null,
  field_names text[] not null,
  search_text text not null,
  constraint source_tables_pkey PRIMARY KEY (base_id, table_id),
  constraint source_tables_base_fkey FOREIGN KEY (base_id) REFERENCES bases(id) ON DELETE CASCADE
);

create table sql_users (
  id text not null,
  database_id text not null,
  name text not null,
  role_name text not null,
  encrypted_password text not null,
  created_by text not null,
  created_at timestamp with time zone not null default now(),
  last_seen_at timestamp with time zone,
  constraint sql_users_pkey PRIMARY KEY (id),
  constraint sql_users_role_key UNIQUE (role_name),
  constraint sql_users_database_fkey FOREIGN KEY (database_id) REFERENCES databases(id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX sql_users_name_key ON sql_users (database_id, lower(name));

create table sync_runs (
  id bigint generated always as identity,
  base_id text not null,
  kind text not null,
  started_at timestamp with time zone not null,
  completed_at timestamp with time zone,
  syncs integer not null default 1,
  total_ms double precision,
  longest_ms double precision,
  seen integer not null,
  inserted integer not null,
  updated integer not null,
  deleted integer not null,
  requests integer not null,
  wait_ms double precision not null,
  lag_ms double precision,
  max_lag_ms double precision,
  error_code text,
  error_message text,
  constraint sync_runs_kind_check CHECK (kind = ANY (ARRAY['first'::text, 'rebuild'::text, 'sweep'::text, 'rapid'::text, 'live'::text])),
  constraint sync_runs_pkey PRIMARY KEY (id),
  constraint sync_runs_base_fkey FOREIGN KEY (base_id) REFERENCES bases(id) ON DELETE CASCADE
) with (fillfactor=80, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=1000);
CREATE INDEX sync_runs_base_idx ON sync_runs (base_id, id DESC);
CREATE INDEX sync_runs_started_idx ON sync_runs (started_at);
comment on column sync_runs.kind is 'rapid: a cycle over all tables, asking for modified records; live: a batch of changes from the feed';
comment on column sync_runs.completed_at is 'null when the run failed';
comment on column sync_runs.syncs is 'number of runs in the row; started_at is of the first, completed_at and seen of the last, the other counts are sums';
comment on column sync_runs.lag_ms is 'sum over the syncs: the age of the data, on average since the sync before; null: in the background, or failed';
comment on column sync_runs.max_lag_ms is 'the greatest age of the data, just before a sync replaced it';

create table task_attempts (
  task text not null,
  subject text not null,
  unended integer not null default 0,
  failures integer not null default 0,
  due_at timestamp with time zone not null default now(),
  tried_at timestamp with time zone not null default now(),
  constraint task_attempts_pkey PRIMARY KEY (task, subject)
);

create table two_factors (
  id text not null,
  user_id text not null,
  secret text not null,
  backup_codes text not null,
  verified boolean not null default false,
  failed_verification_count integer not null default 0,
  locked_until timestamp with time zone,
  constraint two_factors_pkey PRIMARY KEY (id),
  constraint two_factors_user_key UNIQUE (user_id),
  constraint two_factors_user_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);

create table used_codes (
  user_id text not null,
  code text not null,
  used_at timestamp with time zone not null default now(),
  constraint used_codes_pkey PRIMARY KEY (user_id, code),
  constraint used_codes_user_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);

create table user_logins (
  id text not null,
  user_id text not null,
  provider_id text not null,
  account_id text not null,
  password text,
  access_token text,
  refresh_token text,
  id_token text,
  access_token_expires_at timestamp with time zone,
  refresh_token_expires_at timestamp with time zone,
  scope text,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint user_logins_pkey PRIMARY KEY (id),
  constraint user_logins_provider_key UNIQUE (provider_id, account_id),
  constraint user_logins_user_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);
CREATE INDEX user_logins_user_idx ON user_logins (user_id);
comment on column user_logins.account_id is 'the user''s id at the provider; our own user id where provider_id is credential';
comment on column user_logins.password is 'argon2id, in the PHC string format';

create table users (
  id text not null,
  name text not null,
  email text not null,
  email_verified boolean not null default false,
  two_factor_enabled boolean not null default false,
  image text,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint users_email_check CHECK (email = lower(email)),
  constraint users_email_key UNIQUE (email),
  constraint users_pkey PRIMARY KEY (id)
);

create table verifications (
  id text not null,
  identifier text not null,
  value text not null,
  expires_at timestamp with time zone not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint verifications_pkey PRIMARY KEY (id)
);
CREATE INDEX verifications_identifier_idx ON verifications (identifier);

create table watchdog_clock (
  checked_at timestamp with time zone not null
);
CREATE UNIQUE INDEX watchdog_clock_one_row ON watchdog_clock ((true));
alter table watchdog_clock replica identity full;

create table workspaces (
  id text not null,
  account_id text not null,
  name text not null,
  plan text not null,
  calls_per_month integer,
  reserve integer not null,
  created_at timestamp with time zone not null default now(),
  constraint workspaces_calls_check CHECK (calls_per_month > 0),
  constraint workspaces_name_key UNIQUE (account_id, name),
  constraint workspaces_pkey PRIMARY KEY (id),
  constraint workspaces_reserve_check CHECK (reserve >= 0 AND reserve <= COALESCE(calls_per_month, 0)),
  constraint workspaces_account_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE
);

create type source_limits as (
  window_ms double precision,
  per_window integer,
  throttled_per_window integer,
  per_user integer,
  uncapped_plans text[]
);

-- accept_key(text,text) returns void
-- attempt(text,integer,interval) returns integer
-- quota_announce(text) returns void
-- quota_block(text,source_limits,double precision,text,integer,boolean,double precision) returns boolean
-- quota_carry_over(text,text,text) returns void
-- quota_count(jsonb,integer,timestamp with time zone) returns void
-- quota_end_session(text,double precision) returns void
-- quota_epoch(double precision) returns double precision
-- quota_forget(text) returns void
-- quota_heartbeat(text,text,boolean,double precision,integer,boolean,integer,double precision) returns TABLE(asked_at double precision, epoch double precision, owed integer, silent integer)
-- quota_is_overdue(quota_wants,double precision) returns boolean
-- quota_is_resting(quota_permits,double precision) returns boolean
-- quota_is_sole(text,text) returns boolean
-- quota_is_unused(quota_keys,double precision) returns boolean
-- quota_is_users(quota_keys,source_limits,double precision) returns boolean
-- quota_lapse(text,text,integer,double precision) returns void
-- quota_lease_ms() returns double precision
-- quota_lock(text) returns void
-- quota_longest_rest_ms() returns double precision
-- quota_of_hour(integer,integer) returns integer[]
-- quota_open(text,integer,integer,double precision) returns void
-- quota_owed(double precision) returns TABLE(name text, owed integer, owed_until double precision, seen_at double precision)
-- quota_pause(text,source_limits,double precision,double precision) returns void
-- quota_recall(text,boolean,boolean,double precision) returns TABLE(session text, life integer, part jsonb)
-- quota_serve(text,double precision) returns jsonb
-- quota_silent(double precision) returns integer
-- quota_state(text,double precision) returns jsonb
-- quota_suspect(quota_keys,source_limits,double precision) returns void
-- quota_throttle(text,double precision,boolean,double precision,text) returns void
-- quota_throttled_until(text) returns double precision
-- quota_trade(text,text,integer,text,integer,integer,integer[],double precision[],integer,integer,text,double precision) returns TABLE(session text, message jsonb)
-- quota_trim(double precision) returns integer
-- quota_unthrottle(text,text) returns void
-- quota_usable(text,double precision) returns integer
-- quota_want(text,text,integer,text,integer,integer,double precision) returns void
