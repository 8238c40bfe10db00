-- The control plane's tables. Functions are in functions/, and schema.sql shows the whole as a server reports it.
-- Rows that are updated every few seconds have a fillfactor, and no index on the columns that change: the update then
-- stays in its page (HOT) and needs no vacuum. test/support/hot-rows.ts lists them. Where nothing else changes, autovacuum would
-- analyze such a table each minute, whose statistics are most of the WAL of an installation at rest: it waits for 1000 updates.
-- Every `encrypted_…` column is encrypted by core/secrets.ts, with `<table>.<column without the prefix>:<id>` as its
-- context.

-- ---------------------------------------------------------------------------------------------- accounts and users

-- notify_channel(channel): a trigger that tells processes that a table has changed; they read what has. They also look by
-- themselves from time to time, because a notification may get lost with its connection.
create function notify_channel() returns trigger
language plpgsql as $$
begin
  perform pg_notify(tg_argv[0], '');
  return null;
end $$;
revoke execute on function notify_channel() from public;

create table accounts (
  id text not null,
  email text not null,
  is_operator boolean not null default false,
  created_at timestamptz not null default now(),
  -- Where the account's new databases are created, once the operator has agreed; null: on any cluster with room.
  region text,
  -- In the link of the public status page; null: there is none.
  status_token text,
  constraint accounts_pkey primary key (id),
  constraint accounts_status_key unique (status_token)
);

-- One account per address, ignoring case.
create unique index accounts_email_key on accounts (lower(email));

-- users, user_logins, two_factors, sessions, verifications and rate_limits are better-auth's tables, under our names.

create table users (
  id text not null,
  name text not null,
  email text not null,
  email_verified boolean not null default false,
  two_factor_enabled boolean not null default false,
  image text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint users_pkey primary key (id),
  constraint users_email_key unique (email),
  constraint users_email_check check (email = lower(email))
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
  access_token_expires_at timestamptz,
  refresh_token_expires_at timestamptz,
  scope text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint user_logins_pkey primary key (id),
  constraint user_logins_user_fkey foreign key (user_id) references users (id) on delete cascade,
  constraint user_logins_provider_key unique (provider_id, account_id)
);

comment on column user_logins.account_id is 'the user''s id at the provider; our own user id where provider_id is credential';
comment on column user_logins.password is 'argon2id, in the PHC string format';

create index user_logins_user_idx on user_logins (user_id);

-- Second factors: the secret of a user's authenticator app, and backup codes. Both are encrypted by the library, with a
-- key derived from SECRET_KEY; core/control/setup/two-factor-encryption.ts rotates them.
create table two_factors (
  id text not null,
  user_id text not null,
  secret text not null,
  backup_codes text not null,
  -- False until a code has shown that the app has the secret: until then, sign-ins do not ask for one.
  verified boolean not null default false,
  failed_verification_count integer not null default 0,
  locked_until timestamptz,
  constraint two_factors_pkey primary key (id),
  constraint two_factors_user_key unique (user_id),
  constraint two_factors_user_fkey foreign key (user_id) references users (id) on delete cascade
);

-- Codes of authenticator apps that have been used: each works once. A code is valid for 90 seconds; older rows are deleted
-- with the next code of the user.
create table used_codes (
  user_id text not null,
  code text not null,
  used_at timestamptz not null default now(),
  constraint used_codes_pkey primary key (user_id, code),
  constraint used_codes_user_fkey foreign key (user_id) references users (id) on delete cascade
);

create table sessions (
  id text not null,
  user_id text not null,
  token text not null,
  expires_at timestamptz not null,
  ip_address text,
  user_agent text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  account_id text,
  constraint sessions_pkey primary key (id),
  constraint sessions_user_fkey foreign key (user_id) references users (id) on delete cascade,
  constraint sessions_account_fkey foreign key (account_id) references accounts (id) on delete set null,
  constraint sessions_token_key unique (token)
);

comment on column sessions.token is 'useless alone: the cookie carries it signed with a key derived from SECRET_KEY';
comment on column sessions.account_id is 'the account that the session shows; null: the user''s own';

create index sessions_user_idx on sessions (user_id);

create table verifications (
  id text not null,
  identifier text not null,
  value text not null,
  expires_at timestamptz not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint verifications_pkey primary key (id)
);

create index verifications_identifier_idx on verifications (identifier);

create table rate_limits (
  id text not null,
  key text not null,
  count integer not null,
  last_request double precision not null,
  constraint rate_limits_pkey primary key (id),
  constraint rate_limits_key_key unique (key)
);

comment on column rate_limits.last_request is 'ms since 1970';

create table account_members (
  account_id text not null,
  user_id text not null,
  role text not null,
  created_at timestamptz not null default now(),
  constraint account_members_pkey primary key (account_id, user_id),
  constraint account_members_account_fkey foreign key (account_id) references accounts (id) on delete cascade,
  constraint account_members_user_fkey foreign key (user_id) references users (id) on delete cascade,
  constraint account_members_role_check check (role in ('owner', 'editor', 'viewer'))
);

create index account_members_user_idx on account_members (user_id);
-- An account has one owner; a user owns one account.
create unique index account_members_owner_key on account_members (account_id) where role = 'owner';
create unique index account_members_own_key on account_members (user_id) where role = 'owner';

create table invitations (
  id text not null,
  account_id text not null,
  email text not null,
  role text not null,
  token_hash text not null,
  invited_by text,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  constraint invitations_pkey primary key (id),
  constraint invitations_role_check check (role in ('editor', 'viewer')),
  constraint invitations_account_fkey foreign key (account_id) references accounts (id) on delete cascade,
  constraint invitations_inviter_fkey foreign key (invited_by) references users (id) on delete set null,
  constraint invitations_email_key unique (account_id, email),
  constraint invitations_hash_key unique (token_hash)
);

comment on column invitations.token_hash is 'SHA-256 of the link''s token, in hex';

-- An AI client: it reads bases as a SQL user of its own, and may propose changes that members approve.
create table agents (
  id text not null,
  account_id text not null,
  name text not null,
  may_propose boolean not null,
  -- Other limits than the usual ones: {"calls", "queries", "proposals", "operations"}.
  limits jsonb not null default '{}',
  -- E-mail address of the user, or name of the token or operator, who created it.
  created_by text not null,
  created_at timestamptz not null default now(),
  constraint agents_pkey primary key (id),
  constraint agents_account_fkey foreign key (account_id) references accounts (id) on delete cascade
);

-- One agent per name and account, ignoring case.
create unique index agents_name_key on agents (account_id, lower(name));

create table api_tokens (
  id text not null,
  account_id text not null,
  name text not null,
  -- The first characters of the token, by which people recognize it.
  prefix text not null,
  token_hash text not null,
  scopes text[] not null,
  created_at timestamptz not null default now(),
  -- Null: it does not expire.
  expires_at timestamptz,
  last_used_at timestamptz,
  -- The user who created it: a member's tokens are deleted with the member. Null: the operator.
  created_by text,
  -- The agent that it belongs to; null: a program that uses the management API.
  agent_id text,
  constraint api_tokens_pkey primary key (id),
  constraint api_tokens_account_fkey foreign key (account_id) references accounts (id) on delete cascade,
  constraint api_tokens_user_fkey foreign key (created_by) references users (id) on delete cascade,
  constraint api_tokens_agent_fkey foreign key (agent_id) references agents (id) on delete cascade,
  constraint api_tokens_hash_key unique (token_hash),
  -- An agent's token is of no use for the management API.
  constraint api_tokens_scopes_check check (cardinality(scopes) > 0 and scopes <@ case when agent_id is null
    then array['read', 'write', 'credentials'] else array['agent:read', 'agent:propose'] end)
);

comment on column api_tokens.token_hash is 'SHA-256 of the token, in hex; a token is 32 random bytes, so no salt is needed';
comment on column api_tokens.last_used_at is 'to the hour, so that not every use of a token is a write';

create index api_tokens_account_idx on api_tokens (account_id);
create unique index api_tokens_agent_key on api_tokens (agent_id) where agent_id is not null;

-- Sign-in for the clients of agents: the tables of better-auth's OAuth provider, under our names. It writes lists as JSON
-- into text, and uses of each table only a part. Tokens and codes are stored as hashes.

-- The clients that people have connected, from the documents that describe them.
create table oauth_clients (
  id text not null,
  -- The address of the client's metadata document.
  client_id text not null,
  client_secret text,
  client_discovery_id text,
  disabled boolean default false,
  skip_consent boolean,
  enable_end_session boolean,
  subject_type text,
  scopes text,
  client_credentials_scopes text,
  user_id text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  name text,
  uri text,
  icon text,
  contacts text,
  tos text,
  policy text,
  software_id text,
  software_version text,
  software_statement text,
  redirect_uris text not null,
  post_logout_redirect_uris text,
  backchannel_logout_uri text,
  backchannel_logout_session_required boolean,
  token_endpoint_auth_method text,
  application_type text,
  jwks text,
  jwks_uri text,
  grant_types text,
  response_types text,
  require_pkce boolean,
  dpop_bound_access_tokens boolean,
  reference_id text,
  metadata jsonb,
  constraint oauth_clients_pkey primary key (id),
  constraint oauth_clients_user_fkey foreign key (user_id) references users (id) on delete cascade,
  constraint oauth_clients_client_key unique (client_id)
);

create index oauth_clients_user_idx on oauth_clients (user_id) where user_id is not null;

-- What tokens are for: the address of `/mcp`.
create table oauth_resources (
  id text not null,
  identifier text not null,
  name text not null,
  access_token_ttl integer,
  refresh_token_ttl integer,
  signing_algorithm text,
  signing_key_id text,
  allowed_scopes text,
  custom_claims jsonb,
  dpop_bound_access_tokens_required boolean,
  disabled boolean,
  created_at timestamptz,
  updated_at timestamptz,
  policy_version integer,
  metadata jsonb,
  constraint oauth_resources_pkey primary key (id),
  constraint oauth_resources_identifier_key unique (identifier)
);

-- A member's consent that a client acts as an agent (`reference_id`).
create table oauth_consents (
  id text not null,
  client_id text not null,
  user_id text not null,
  reference_id text not null,
  resources text,
  requested_user_info_claims text,
  scopes text not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint oauth_consents_pkey primary key (id),
  constraint oauth_consents_client_fkey foreign key (client_id) references oauth_clients (client_id) on delete cascade,
  constraint oauth_consents_user_fkey foreign key (user_id) references users (id) on delete cascade,
  constraint oauth_consents_agent_fkey foreign key (reference_id) references agents (id) on delete cascade,
  constraint oauth_consents_key unique (reference_id, user_id, client_id)
);

create index oauth_consents_client_idx on oauth_consents (client_id);
create index oauth_consents_user_idx on oauth_consents (user_id);

create table oauth_refresh_tokens (
  id text not null,
  -- SHA-256, in hex.
  token text not null,
  client_id text not null,
  session_id text,
  user_id text not null,
  -- The agent.
  reference_id text not null,
  authorization_code_id text,
  resources text,
  requested_user_info_claims text,
  expires_at timestamptz not null,
  created_at timestamptz not null,
  -- When it was replaced by the next one: using it again after that ends the connection.
  revoked timestamptz,
  rotated_at timestamptz,
  rotation_replay_response text,
  rotation_replay_expires_at timestamptz,
  auth_time timestamptz,
  confirmation jsonb,
  scopes text not null,
  constraint oauth_refresh_tokens_pkey primary key (id),
  constraint oauth_refresh_tokens_client_fkey foreign key (client_id) references oauth_clients (client_id)
    on delete cascade,
  constraint oauth_refresh_tokens_session_fkey foreign key (session_id) references sessions (id) on delete set null,
  constraint oauth_refresh_tokens_user_fkey foreign key (user_id) references users (id) on delete cascade,
  constraint oauth_refresh_tokens_agent_fkey foreign key (reference_id) references agents (id) on delete cascade,
  constraint oauth_refresh_tokens_token_key unique (token)
);

create index oauth_refresh_tokens_client_idx on oauth_refresh_tokens (client_id);
create index oauth_refresh_tokens_session_idx on oauth_refresh_tokens (session_id);
create index oauth_refresh_tokens_user_idx on oauth_refresh_tokens (user_id);
create index oauth_refresh_tokens_agent_idx on oauth_refresh_tokens (reference_id);
create index oauth_refresh_tokens_code_idx on oauth_refresh_tokens (authorization_code_id);
create index oauth_refresh_tokens_expires_idx on oauth_refresh_tokens (expires_at);

create table oauth_access_tokens (
  id text not null,
  -- SHA-256, in hex.
  token text not null,
  client_id text not null,
  session_id text,
  user_id text not null,
  -- The agent.
  reference_id text not null,
  authorization_code_id text,
  resources text,
  requested_user_info_claims text,
  refresh_id text,
  expires_at timestamptz not null,
  created_at timestamptz not null,
  revoked timestamptz,
  confirmation jsonb,
  scopes text not null,
  constraint oauth_access_tokens_pkey primary key (id),
  constraint oauth_access_tokens_client_fkey foreign key (client_id) references oauth_clients (client_id)
    on delete cascade,
  constraint oauth_access_tokens_session_fkey foreign key (session_id) references sessions (id) on delete set null,
  constraint oauth_access_tokens_user_fkey foreign key (user_id) references users (id) on delete cascade,
  constraint oauth_access_tokens_agent_fkey foreign key (reference_id) references agents (id) on delete cascade,
  constraint oauth_access_tokens_refresh_fkey foreign key (refresh_id) references oauth_refresh_tokens (id)
    on delete cascade,
  constraint oauth_access_tokens_token_key unique (token)
);

create index oauth_access_tokens_client_idx on oauth_access_tokens (client_id);
create index oauth_access_tokens_session_idx on oauth_access_tokens (session_id);
create index oauth_access_tokens_user_idx on oauth_access_tokens (user_id);
create index oauth_access_tokens_agent_idx on oauth_access_tokens (reference_id);
create index oauth_access_tokens_refresh_idx on oauth_access_tokens (refresh_id);
create index oauth_access_tokens_code_idx on oauth_access_tokens (authorization_code_id);
create index oauth_access_tokens_expires_idx on oauth_access_tokens (expires_at);

-- Assertions with which clients prove their keys: each works once.
create table oauth_client_assertions (
  id text not null,
  expires_at timestamptz not null,
  constraint oauth_client_assertions_pkey primary key (id)
);

create index oauth_client_assertions_expires_idx on oauth_client_assertions (expires_at);

-- Rate limits of the console (sign-ins, mails ...), shared by all processes; see functions/attempts.sql. Unlogged,
-- because a crash costs no more than one window of the limits.
create unlogged table attempts (
  key text not null,
  count integer not null,
  ends_at timestamptz not null,
  constraint attempts_pkey primary key (key)
) with (fillfactor = 50);

-- Expired counters are deleted every hour.
create index attempts_ends_idx on attempts (ends_at);

-- The log of changes by users and operators. Without foreign keys: an entry outlives the objects that it names.
create table audit_log (
  id bigint generated always as identity,
  at timestamptz not null default clock_timestamp(),
  -- Null: the service as a whole.
  account_id text,
  actor_kind text not null,
  -- E-mail address of a user or operator, name of a token, or user name on the command line.
  actor text not null,
  action text not null,
  -- Id of the object that was changed; its prefix shows the kind.
  subject text,
  -- Facts for people, never a secret.
  details jsonb not null default '{}',
  -- Entries that count frequent events (failed sign-ins, credentials read by a program): one per hour, so that they
  -- cannot fill the log. Null: one event.
  period timestamptz,
  constraint audit_log_pkey primary key (id),
  constraint audit_log_actor_check check (actor_kind in ('user', 'token', 'operator', 'cli', 'system')),
  constraint audit_log_details_check check (jsonb_typeof(details) = 'object')
);

create index audit_log_account_idx on audit_log (account_id, id desc);
create index audit_log_at_idx on audit_log (at);
create unique index audit_log_period_key on audit_log (account_id, action, subject, actor, period) where period is not null;

-- --------------------------------------------------------------------------------------------- clusters and databases

create table clusters (
  id text not null,
  name text not null,
  region text not null,
  -- What pages say of where its data lies: a region, "this machine", or nothing if the operator has not said it.
  location text,
  encrypted_admin_url text not null,
  public_host text not null,
  public_port integer not null,
  state text not null default 'active',
  created_at timestamptz not null default now(),
  -- The timeline on which the server was last seen to write. Another one means that a standby was promoted or a backup
  -- restored, and that the leases of its bases must start again. Null: never seen, or the server does not report it.
  timeline text,
  constraint clusters_pkey primary key (id),
  constraint clusters_name_key unique (name),
  constraint clusters_state_check check (state in ('active', 'draining')),
  constraint clusters_port_check check (public_port between 1 and 65535)
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
  created_at timestamptz not null default now(),
  connection_limit integer not null default 10,
  constraint databases_pkey primary key (id),
  constraint databases_account_fkey foreign key (account_id) references accounts (id),
  constraint databases_cluster_fkey foreign key (cluster_id) references clusters (id),
  constraint databases_connection_limit_check check (connection_limit between 1 and 10000),
  -- Either hosted, with a role of ours, or the customer's own, reached with the URL that they gave.
  constraint databases_place_check check (
    case when cluster_id is null
      then num_nonnulls(encrypted_url, external_host, external_port) = 3 and encrypted_password is null
      else num_nonnulls(encrypted_url, external_host, external_port) = 0 and encrypted_password is not null
    end),
  constraint databases_reader_check check (
    case when cluster_id is null then encrypted_console_password is null
      else encrypted_reader_url is null and not accepts_privileges
    end)
);

comment on column databases.encrypted_console_password is 'of the role that the console logs in with; null: it gets one when it is next needed';
comment on column databases.encrypted_reader_url is 'URL of a customer''s own database with which members without the right to see credentials read it';
comment on column databases.accepts_privileges is 'its owner has confirmed a URL whose role has more rights than its own database, such as a superuser''s';

comment on column databases.connection_limit is 'connections that the role of a hosted database may open';

create index databases_account_idx on databases (account_id);
create unique index databases_hosted_key on databases (cluster_id, name) where cluster_id is not null;
-- Two syncs into one schema would conflict: a customer's database is registered once over all accounts.
create unique index databases_external_key on databases (external_host, external_port, name) where cluster_id is null;

-- Further logins of hosted databases, each with a name, a role and a password of its own.
create table sql_users (
  id text not null,
  database_id text not null,
  name text not null,
  role_name text not null,
  encrypted_password text not null,
  -- E-mail address of the user, or name of the token or operator, who created it.
  created_by text not null,
  created_at timestamptz not null default now(),
  -- To the minute, as sampled by the watchdog; null: never.
  last_seen_at timestamptz,
  -- By id of a base, what it may write there: {"mode", "tables"}, with the source's ids of the tables.
  writes jsonb not null default '{}',
  -- The agent that reads with it, and only what it was granted; null: it reads what the database's own role reads.
  agent_id text,
  constraint sql_users_pkey primary key (id),
  constraint sql_users_database_fkey foreign key (database_id) references databases (id) on delete cascade,
  -- An agent's roles are dropped before its row is.
  constraint sql_users_agent_fkey foreign key (agent_id) references agents (id),
  constraint sql_users_role_key unique (role_name)
);

-- One user per name and database, ignoring case, and one per agent.
create unique index sql_users_name_key on sql_users (database_id, lower(name)) where agent_id is null;
create unique index sql_users_agent_key on sql_users (agent_id, database_id) where agent_id is not null;

-- The id of this installation: it labels what the installation creates on a cluster that others use too.
create table installation (
  id text not null,
  made_at timestamptz not null default now(),
  -- When the operator last dumped this database; the documented command of a backup sets it.
  backed_up_at timestamptz,
  constraint installation_pkey primary key (id)
);
create unique index installation_one_row on installation ((true));

-- When the watchdog last examined all clusters; one worker at a time does. No row: not since the last crash.
create unlogged table watchdog_clock (
  checked_at timestamptz not null
) with (autovacuum_vacuum_threshold = 1000, autovacuum_analyze_threshold = 1000);
create unique index watchdog_clock_one_row on watchdog_clock ((true));

-- ------------------------------------------------------------------------------------------------- workspaces and bases

-- A workspace at the source: its plan caps the calls of a month over all its bases.
create table workspaces (
  id text not null,
  account_id text not null,
  name text not null,
  plan text not null,
  -- null: no cap
  calls_per_month integer,
  -- Calls of the month that sync leaves to clients.
  reserve integer not null,
  created_at timestamptz not null default now(),
  constraint workspaces_pkey primary key (id),
  constraint workspaces_account_fkey foreign key (account_id) references accounts (id) on delete cascade,
  constraint workspaces_name_key unique (account_id, name),
  constraint workspaces_calls_check check (calls_per_month > 0),
  constraint workspaces_reserve_check check (reserve between 0 and coalesce(calls_per_month, 0))
);

create table bases (
  id text not null,
  account_id text not null,
  platform text not null,
  source_base_id text not null,
  name text not null,
  encrypted_api_key text not null,
  -- When the source last accepted the base's own key outside of a sync: at a change of the key, or when the key read a
  -- record back that a client had written.
  key_accepted_at timestamptz,
  -- The user at the source whose API key it is; null until asked.
  source_user_id text,
  -- null: its calls are not capped
  workspace_id text,
  database_id text not null,
  schema_name text not null,
  -- The other database of a move: the new one until the base has moved, then the old one. Either way it is the one to
  -- drop.
  move_database_id text,
  created_at timestamptz not null default now(),

  -- Settings
  turbo boolean not null default false,
  rapid boolean not null default false,
  live boolean not null default true,
  linked_records_as_text boolean not null default false,
  lookups_as_text boolean not null default false,
  pinned_names boolean not null default false,
  alias_days integer not null default 7,
  own_names jsonb not null default '[]',
  link_views boolean not null default false,
  history boolean not null default false,
  history_days integer not null default 30,
  notify boolean not null default false,
  muted_fields jsonb not null default '[]',
  attachment_views boolean not null default false,
  own_attachment_urls boolean not null default false,
  encrypted_attachment_key text,
  attachment_key_version integer not null default 0,
  selection jsonb,
  encrypted_hash_key text,
  unanswered_tables jsonb not null default '[]',
  replica_reads boolean not null default false,
  coalesce_writes boolean not null default false,
  change_sets boolean not null default false,
  sql_writes boolean not null default false,
  sql_writes_queued boolean not null default false,
  -- The replica's outbox may have transactions that are not change sets, or have no results there.
  has_outbox boolean not null default false,
  -- With it, the triggers of the replica authenticate to the endpoint of SQL writes; null: they were never installed.
  encrypted_write_secret text,
  -- The version of SQL writes that the replica has, with the address of their endpoint; null: it may have lost them, or have
  -- another control plane's endpoint. Unless it is the current one, they are installed again.
  sql_writes_installed text,
  indexes jsonb not null default '[]',
  is_paused boolean not null default false,

  -- State
  state text not null default 'starting',
  resync_requested_at timestamptz,
  -- The source's schema was found to differ from the replica's: the next sync reads it, no matter when it was last
  -- read.
  schema_check_requested_at timestamptz,
  -- When a client last made a write that only a sync can find; null: it has been found.
  catch_up_requested_at timestamptz,
  -- When the call budget allows the next sync, if it delays it.
  rests_until timestamptz,
  progress jsonb,
  -- A page has shown the progress of the first sync: it estimates the sizes of tables.
  is_watched boolean not null default false,
  -- When a first sync or a rebuild last got further than ever before.
  progress_at timestamptz,
  problems jsonb not null default '[]',
  failing_tables jsonb not null default '[]',
  schema_error jsonb,
  tables jsonb not null default '[]',
  issue_count integer not null default 0,
  issues jsonb not null default '[]',

  -- The last sync
  sync_kind text,
  sync_started_at timestamptz,
  sync_completed_at timestamptz,
  sync_duration_ms double precision,
  attempted_at timestamptz,
  error_code text,
  error_message text,
  error_since timestamptz,
  recent_sweep_ms double precision[] not null default '{}',
  recent_rapid_ms double precision[] not null default '{}',
  recent_live_ms double precision[] not null default '{}',
  sweep_started_at timestamptz,
  sweep_completed_at timestamptz,
  sweep_background_ms double precision,
  -- Identity and epoch of the replica when its last lease began. Another server, another timeline or a smaller epoch
  -- means that the replica may have lost commits. The epoch only grows, in whichever database the replica is.
  replica_identity text,
  replica_epoch bigint,

  constraint bases_pkey primary key (id),
  constraint bases_account_fkey foreign key (account_id) references accounts (id),
  constraint bases_database_fkey foreign key (database_id) references databases (id),
  constraint bases_move_database_id_fkey foreign key (move_database_id) references databases (id),
  constraint bases_workspace_fkey foreign key (workspace_id) references workspaces (id) on delete set null,
  constraint bases_source_key unique (account_id, platform, source_base_id),
  constraint bases_schema_key unique (database_id, schema_name),
  constraint bases_state_check check (state in ('starting', 'active', 'paused', 'needs_attention', 'moving', 'deleting')),
  constraint bases_paused_check check (state in ('moving', 'deleting') or is_paused = (state = 'paused')),
  constraint bases_history_days_check check (history_days between 1 and 3650),
  constraint bases_sync_kind_check check (sync_kind in ('first', 'rebuild', 'sweep', 'rapid', 'live')),
  constraint bases_error_check check (num_nulls(error_code, error_message, error_since) in (0, 3))
)
-- Updated after every sync: free space in the page keeps those updates HOT.
with (fillfactor = 50);

comment on column bases.live is 'read changes from the source''s feed, if the key allows it';
comment on column bases.pinned_names is 'tables and columns of the replica keep their names when they are renamed in the source';
comment on column bases.alias_days is 'after a rename, the old name answers for so many days';
comment on column bases.own_names is 'names that people have chosen: [{"tableId", "fieldId", "name"}], with the source''s ids; fieldId is null for a table';
comment on column bases.link_views is 'the replica has a view for each array of links: one row per link';
comment on column bases.history is 'changes of records are recorded in _sync_history, for history_days';
comment on column bases.muted_fields is 'fields whose issues do not count: [{"tableId", "fieldId"}], with the source''s ids';
comment on column bases.notify is 'changes of records are sent to listeners of the channel "basetide"';
comment on column bases.attachment_views is 'the replica has a view for each column of attachments: one row per file';
comment on column bases.own_attachment_urls is 'attachments are stored as URLs of the console, which redirect to fresh ones of the source';
comment on column bases.encrypted_attachment_key is 'signs those URLs; stored while the setting is off, for URLs handed out before';
comment on column bases.attachment_key_version is 'raised with a new key: rows signed with an older one are written again';
comment on column bases.selection is 'what is copied, by the source''s ids of tables, views and fields; null: everything';
comment on column bases.encrypted_hash_key is 'hashes the cells of fields that the selection hashes; never replaced, because hashes would no longer join';
comment on column bases.unanswered_tables is 'new tables in the source that the selection asks about: [{"id", "name"}]';
comment on column bases.replica_reads is 'reads through the proxy may be answered from the replica even without the header that requests it';
comment on column bases.coalesce_writes is 'the proxy may send writes of single records to the source in one request';
comment on column bases.change_sets is 'members may have records changed in the source with the base''s own key';
comment on column bases.sql_writes is 'SQL users may write to views of the replica, which has the writes made in the source';
comment on column bases.sql_writes_queued is 'those writes are committed to an outbox in the replica, and made later: its server does not connect to the endpoint';
comment on column bases.indexes is 'indexes on columns of the replica''s tables: [{"tableId", "fieldId", "table", "column", "kind"}], with the source''s ids and the SQL names last seen';
comment on column bases.failing_tables is 'the tables that cannot be read while the others are synced, as the API shows them';
comment on column bases.schema_error is 'why the schema cannot be read, if it cannot: {code, message, since}';
comment on column bases.problems is 'what keeps the replica from equaling the source, as the base''s worker finds it: [{"kind", "tableId", "name", "message", "since", "nextAt"}], times in ms since 1970';
comment on column bases.progress is 'the first sync or rebuild that is running: {kind, started_at, tables}';
comment on column bases.issues is 'the largest groups of the issue_count issues, by field and reason, as the API shows them';
comment on column bases.sync_started_at is 'with kind, completed_at and duration_ms: the last sync that completed';
comment on column bases.attempted_at is 'when the last sync ended, completed or not';
comment on column bases.error_since is 'when the first of the unbroken run of failed syncs ended; null when the last one completed';
comment on column bases.recent_sweep_ms is 'durations of the last 20 completed sweeps, latest first';
comment on column bases.recent_rapid_ms is 'likewise of cycles in rapid mode';
comment on column bases.recent_live_ms is 'likewise of batches in live mode that changed something';
comment on column bases.sweep_started_at is 'with completed_at: the last full read of all records, including those in the background';
comment on column bases.sweep_background_ms is 'expected duration of a background sweep';

create index bases_source_idx on bases (platform, source_base_id);
create index bases_outbox_idx on bases (id) where has_outbox;

-- Workers that hold bases read again what people may change of them (core/control/bases/settings-watch.ts): after each change
-- but those of a run, which sets attempted_at.
create trigger bases_changed after update on bases for each row
when (old.attempted_at is not distinct from new.attempted_at) execute function notify_channel('basetide_facts');
create trigger bases_deleted after delete on bases for each row execute function notify_channel('basetide_facts');
create trigger clusters_changed after update on clusters for each row execute function notify_channel('basetide_facts');
create index bases_workspace_idx on bases (workspace_id) where workspace_id is not null;
create index bases_source_user_idx on bases (platform, source_user_id) where source_user_id is not null;

-- A base that is being connected: the choices made so far, so that each step is a page of its own.
create table base_drafts (
  id text not null,
  account_id text not null,
  platform text not null,
  encrypted_api_key text,
  key_owner text,
  choices jsonb,
  choices_at timestamptz,
  reports_changes boolean,
  source_base_id text,
  source_base_name text,
  source_size jsonb,
  destination jsonb,
  selection jsonb,
  encrypted_url text,
  base_id text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint base_drafts_pkey primary key (id),
  constraint base_drafts_account_fkey foreign key (account_id) references accounts (id) on delete cascade,
  constraint base_drafts_base_fkey foreign key (base_id) references bases (id) on delete set null
);

comment on column base_drafts.key_owner is 'e-mail address of the user whose key it is, or the id if the key may not read the address; null if unknown';
comment on column base_drafts.choices is 'bases that the key can read, as the source listed them at choices_at';
comment on column base_drafts.reports_changes is 'whether the key may read the feed of changes; null if that could not be determined';
comment on column base_drafts.source_size is 'number of tables, and of records as far as a few calls could count or estimate them; sizes by table';
comment on column base_drafts.destination is 'the destination, an external one without its URL';
comment on column base_drafts.selection is 'what will be copied, as bases.selection';
comment on column base_drafts.encrypted_url is 'URL of an external destination';
comment on column base_drafts.base_id is 'the base that was created; from then on the draft holds no secret';

create index base_drafts_account_idx on base_drafts (account_id, updated_at);

-- Requests of customers to the operator, and their outcome.
create table requests (
  id text not null,
  account_id text not null,
  -- The member or token that sent it.
  requested_by text,
  kind text not null,
  -- writable: the database that is to become writable
  database_id text,
  -- region: where the account's new databases are to be created
  region text,
  message text not null default '',
  state text not null default 'open',
  answer text not null default '',
  created_at timestamptz not null default now(),
  decided_at timestamptz,
  -- The operator's e-mail address, or 'cli'.
  decided_by text,
  constraint requests_pkey primary key (id),
  constraint requests_account_fkey foreign key (account_id) references accounts (id) on delete cascade,
  constraint requests_database_fkey foreign key (database_id) references databases (id) on delete cascade,
  constraint requests_kind_check check (kind in ('region', 'writable', 'shared_database', 'other')),
  constraint requests_state_check check (state in ('open', 'approved', 'denied')),
  constraint requests_decided_check check ((state = 'open') = (decided_at is null)),
  constraint requests_subject_check check (
    (kind = 'writable') = (database_id is not null) and (kind = 'region') = (region is not null))
);

create index requests_account_idx on requests (account_id, created_at);
-- A repeated request changes nothing.
create unique index requests_open_key on requests (account_id, kind, coalesce(database_id, '')) where state = 'open';

-- An account that is being moved to another control plane, or was. Not deleted with the account.
create table account_moves (
  account_id text not null,
  -- out: from here; in: to here, until it is complete.
  direction text not null,
  -- moving: neither control plane serves the account, and the move can be aborted; moved: the other one has it.
  state text not null default 'moving',
  email text not null,
  -- The id of the other control plane's installation.
  installation text not null,
  base_ids text[] not null default '{}',
  -- in: what the move has created here besides the account's own rows.
  user_ids text[] not null default '{}',
  quota_keys text[] not null default '{}',
  -- When the last base was stopped.
  began_at timestamptz not null default now(),
  ended_at timestamptz,
  constraint account_moves_pkey primary key (account_id),
  constraint account_moves_direction_check check (direction in ('out', 'in')),
  constraint account_moves_state_check check (state in ('moving', 'moved'))
);

-- Bases that another control plane has now: proxies refuse requests for them, instead of sending them outside the rate
-- limit that the other one keeps.
create table moved_bases (
  base_id text not null,
  platform text not null,
  source_base_id text not null,
  -- The public URL of the other one's proxy, if the operator has named it.
  proxy_url text,
  moved_at timestamptz not null default now(),
  constraint moved_bases_pkey primary key (base_id)
);

create index moved_bases_source_idx on moved_bases (platform, source_base_id);

-- ---------------------------------------------------------------------------------------------------------------- syncing

-- Sync runs of the last 30 days. Consecutive runs that are alike share a row; core/control/bases/runs.ts defines alike.
create table sync_runs (
  id bigint generated always as identity,
  base_id text not null,
  kind text not null,
  started_at timestamptz not null,
  completed_at timestamptz,
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
  constraint sync_runs_pkey primary key (id),
  constraint sync_runs_base_fkey foreign key (base_id) references bases (id) on delete cascade,
  constraint sync_runs_kind_check check (kind in ('first', 'rebuild', 'sweep', 'rapid', 'live'))
)
-- The last row of each base is updated after every sync. A month of runs is a large table, of which a fifth would be
-- left to be vacuumed once.
with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

comment on column sync_runs.kind is 'rapid: a cycle over all tables, asking for modified records; live: a batch of changes from the feed';
comment on column sync_runs.completed_at is 'null when the run failed';
comment on column sync_runs.syncs is
  'number of runs in the row; started_at is of the first, completed_at and seen of the last, the other counts are sums';

comment on column sync_runs.lag_ms is
  'sum over the syncs: the age of the data, on average since the sync before; null: in the background, or failed';
comment on column sync_runs.max_lag_ms is 'the greatest age of the data, just before a sync replaced it';

create index sync_runs_base_idx on sync_runs (base_id, id desc);
create index sync_runs_started_idx on sync_runs (started_at);

-- What is left of sync_runs after an hour, for charts: one row per base and day (UTC), one element per hour. Null:
-- nothing was synced in that hour. Stored for 31 days.
create table base_days (
  base_id text not null,
  day date not null,
  -- The age of the data: the median over the syncs, and the greatest.
  lag_p50_ms real[] not null,
  lag_max_ms real[] not null,
  -- Rows inserted, updated and deleted.
  changed integer[] not null,
  -- Cells that did not fit their column, at the end of the hour.
  issues integer[] not null,
  constraint base_days_pkey primary key (base_id, day),
  constraint base_days_base_fkey foreign key (base_id) references bases (id) on delete cascade
);

create index base_days_day_idx on base_days (day);

-- Periods in which a base was not current, and why; a row only when that changes. Stored for 91 days.
create table base_periods (
  id bigint generated always as identity,
  base_id text not null,
  kind text not null,
  -- As the badge said: `Key rejected`.
  label text not null,
  began_at timestamptz not null,
  -- Null: it goes on.
  ended_at timestamptz,
  -- As of when the data was complete when it began.
  as_of timestamptz,
  constraint base_periods_pkey primary key (id),
  constraint base_periods_base_fkey foreign key (base_id) references bases (id) on delete cascade,
  constraint base_periods_kind_check check (kind in ('outage', 'delay', 'pause', 'budget')),
  constraint base_periods_order_check check (ended_at >= began_at)
);

create unique index base_periods_open_key on base_periods (base_id) where ended_at is null;
create index base_periods_base_idx on base_periods (base_id, began_at);
create index base_periods_ended_idx on base_periods (ended_at);

-- Changes in the schema of a base's replica, recorded when they were applied; stored for a year.
create table schema_changes (
  id bigint generated always as identity,
  base_id text not null,
  seen_at timestamptz not null default now(),
  kind text not null,
  -- What it means for SQL: core/replica/shape-changes.ts.
  severity text not null default 'additive',
  -- SQL names after the change; for drops, before it. field_name is null for a change of the table itself.
  table_name text not null,
  field_name text,
  -- {source_name, name}, and for a field {source_type, type}
  before jsonb,
  after jsonb,
  constraint schema_changes_pkey primary key (id),
  constraint schema_changes_base_fkey foreign key (base_id) references bases (id) on delete cascade,
  constraint schema_changes_kind_check check (kind in ('table_added', 'table_dropped', 'table_renamed',
    'table_rebuilt', 'field_added', 'field_dropped', 'field_renamed', 'field_retyped', 'table_waiting')),
  constraint schema_changes_severity_check check (severity in ('additive', 'rename', 'breaking'))
);

create index schema_changes_base_idx on schema_changes (base_id, id desc);

-- How the source shows the tables of a base, as of the last schema check: for the console's pages.
create table source_tables (
  base_id text not null,
  table_id text not null,
  primary_field_id text not null,
  -- by field id: type, result, linked table, choices with their colors, format of numbers
  fields jsonb not null,
  name text not null,
  field_names text[] not null,
  -- The names of the table and its fields as the console's search compares them, one per line.
  search_text text not null,
  -- When a sync last found a change of the table's records; null: none since the first sync.
  changed_at timestamptz,
  constraint source_tables_pkey primary key (base_id, table_id),
  constraint source_tables_base_fkey foreign key (base_id) references bases (id) on delete cascade
);

-- Queries that an account has saved in the console's SQL editor.
create table saved_queries (
  id text not null,
  account_id text not null,
  base_id text not null,
  name text not null,
  sql text not null,
  updated_at timestamptz not null default now(),
  constraint saved_queries_pkey primary key (id),
  constraint saved_queries_account_fkey foreign key (account_id) references accounts (id) on delete cascade,
  constraint saved_queries_base_fkey foreign key (base_id) references bases (id) on delete cascade,
  constraint saved_queries_name_key unique (base_id, name)
);

create index saved_queries_account_idx on saved_queries (account_id);

-- Changes of records that are made in the source as one ordered set, with the base's own key.
create table change_sets (
  id text not null,
  base_id text not null,
  -- The member or token that created it.
  created_by text,
  note text not null default '',
  -- The source converts texts to the types of their fields, and adds options.
  typecast boolean not null default false,
  state text not null,
  -- The set whose changes this one undoes.
  undoes text,
  -- The agent that proposed it; null: a member or a token, or the agent was revoked.
  agent_id text,
  -- Somebody had to approve it.
  is_proposal boolean not null default false,
  -- A rule of its agent approved it.
  by_rule boolean not null default false,
  -- When members were told that it waits.
  announced_at timestamptz,
  created_at timestamptz not null default now(),
  -- When a proposal can no longer be approved.
  expires_at timestamptz not null default now() + interval '7 days',
  decided_by text,
  decided_at timestamptz,
  -- Why it was rejected, for its author.
  reason text not null default '',
  ended_at timestamptz,
  -- The proxy that carries it out, for as long as it renews that.
  holder text,
  held_until timestamptz,
  -- When the next attempt is due, of a set that cannot continue at the moment.
  rests_until timestamptz,
  -- Why it cannot, as text for people.
  problem text not null default '',
  -- A SQL transaction waits for it: what has not been sent when that or the proxy ends is not made.
  is_awaited boolean not null default false,
  -- Of a SQL transaction: its role, and the application that it has named.
  sql_role text,
  application_name text not null default '',
  constraint change_sets_pkey primary key (id),
  constraint change_sets_base_fkey foreign key (base_id) references bases (id) on delete cascade,
  constraint change_sets_undoes_fkey foreign key (undoes) references change_sets (id) on delete set null,
  constraint change_sets_agent_fkey foreign key (agent_id) references agents (id) on delete set null,
  constraint change_sets_state_check check (
    state in ('proposed', 'approved', 'running', 'applied', 'partly', 'failed', 'rejected', 'canceled')),
  -- One that was canceled ends when what was sent has its result.
  constraint change_sets_ended_check check (
    case when ended_at is null then state in ('proposed', 'approved', 'running', 'canceled')
      else state not in ('proposed', 'approved', 'running') end)
);

create index change_sets_base_idx on change_sets (base_id, created_at desc);
create index change_sets_sql_idx on change_sets (base_id, sql_role, created_at desc) where sql_role is not null;
create index change_sets_undoes_idx on change_sets (undoes);
create index change_sets_agent_idx on change_sets (agent_id) where agent_id is not null;
-- Proposals of an account's bases: those that wait, and the latest.
create index change_sets_proposals_idx on change_sets (base_id, created_at desc) where is_proposal;
create index change_sets_unannounced_idx on change_sets (base_id)
  where is_proposal and state = 'proposed' and announced_at is null;
create index change_sets_due_idx on change_sets (decided_at) where ended_at is null and state <> 'proposed';

create table change_items (
  id text not null,
  set_id text not null,
  position integer not null,
  operation text not null,
  -- The source's id or name of the table.
  table_ref text not null,
  -- Of a create: null until it is made.
  record_id text,
  -- JSON, by the id or name of the field: what is written, what was there according to the author, what was there
  -- when it was sent, and what of the written cells the source has in another form since.
  encrypted_cells text,
  encrypted_expected text,
  encrypted_before text,
  encrypted_after text,
  state text not null default 'waiting',
  sent_at timestamptz,
  -- The source's type and message of the error, or ours. The message may quote a cell.
  error_type text not null default '',
  encrypted_error text,
  constraint change_items_pkey primary key (id),
  constraint change_items_set_fkey foreign key (set_id) references change_sets (id) on delete cascade,
  constraint change_items_position_key unique (set_id, position),
  constraint change_items_operation_check check (operation in ('create', 'update', 'delete')),
  constraint change_items_state_check check (
    state in ('waiting', 'sent', 'applied', 'refused', 'unknown', 'not_applied')),
  constraint change_items_record_check check (operation = 'create' or record_id is not null)
);

create index change_items_unfinished_idx on change_items (set_id, position) where state in ('waiting', 'sent');

-- Queries that a person ran in the console's SQL editor, the latest run of each. Other members of the account do not see them.
-- What an agent may read of a base.
create table agent_bases (
  agent_id text not null,
  base_id text not null,
  -- The source's ids of the tables; null: all, also those that are added later.
  tables text[],
  -- The source's ids of fields that it may not read.
  hidden text[] not null default '{}',
  -- It may read fields of the types that hold personal data or links to files.
  has_private boolean not null default false,
  constraint agent_bases_pkey primary key (agent_id, base_id),
  constraint agent_bases_agent_fkey foreign key (agent_id) references agents (id) on delete cascade,
  constraint agent_bases_base_fkey foreign key (base_id) references bases (id) on delete cascade
);

create index agent_bases_base_idx on agent_bases (base_id);

-- Updates that a proposal of an agent makes without a person: of these fields of a table, so many an hour.
create table agent_rules (
  id text not null,
  agent_id text not null,
  base_id text not null,
  -- The source's id.
  table_id text not null,
  -- The source's ids.
  fields text[] not null,
  updates_per_hour integer not null,
  -- The owner who allows it.
  created_by text not null,
  created_at timestamptz not null default now(),
  constraint agent_rules_pkey primary key (id),
  constraint agent_rules_reads_fkey foreign key (agent_id, base_id)
    references agent_bases (agent_id, base_id) on delete cascade,
  constraint agent_rules_table_key unique (agent_id, base_id, table_id),
  constraint agent_rules_fields_check check (cardinality(fields) > 0 and updates_per_hour > 0)
);

-- The calls of agents, without what was asked and answered.
create table agent_calls (
  id bigint generated always as identity,
  agent_id text not null,
  base_id text,
  called_at timestamptz not null default now(),
  tool text not null,
  ms integer not null,
  -- Null for a tool that returns none.
  rows integer,
  -- Empty if it succeeded.
  error_code text not null default '',
  constraint agent_calls_pkey primary key (id),
  constraint agent_calls_agent_fkey foreign key (agent_id) references agents (id) on delete cascade,
  constraint agent_calls_base_fkey foreign key (base_id) references bases (id) on delete set null
);

create index agent_calls_agent_idx on agent_calls (agent_id, id desc);
create index agent_calls_base_idx on agent_calls (base_id);
create index agent_calls_at_idx on agent_calls (called_at);

create table query_history (
  id text not null,
  account_id text not null,
  user_id text not null,
  base_id text not null,
  sql text not null,
  ran_at timestamptz not null default now(),
  ms integer not null,
  -- Of the last statement; null: the query failed.
  rows integer,
  constraint query_history_pkey primary key (id),
  constraint query_history_member_fkey foreign key (account_id, user_id)
    references account_members (account_id, user_id) on delete cascade,
  constraint query_history_base_fkey foreign key (base_id) references bases (id) on delete cascade
);

create index query_history_base_idx on query_history (base_id, user_id, ran_at);
create index query_history_member_idx on query_history (account_id, user_id);

-- The change feed of a base, and how far it has been read. One row from the first attempt on.
create table live_feeds (
  base_id text not null,
  state text not null default 'making',
  -- refused: why, as text for people, and since when. failing: the feed cannot be read at the moment, and the base is swept
  -- meanwhile.
  reason text not null default '',
  refused_at timestamptz,
  -- Since when there is no feed although live mode is on, and when the source is asked again.
  off_since timestamptz,
  retry_at timestamptz,
  -- The source's id of the webhook; null while there is none.
  webhook_id text,
  -- The key that signs its notifications, encrypted.
  encrypted_secret text,
  -- All changes before it are durable in the replica.
  cursor bigint not null default 1,
  -- The URL that notifications are sent to; null: the feed is polled.
  notification_url text,
  expires_at timestamptz,
  -- The feed gap: the feed lacks changes from before then, and a sweep that starts later must complete.
  gap_since timestamptz,
  notified_at timestamptz,
  -- When a change was found without a notification: until a later notification arrives, the feed is polled.
  missed_notification_at timestamptz,
  -- When the source was last asked for the webhook's state.
  checked_at timestamptz,
  read_at timestamptz,
  -- The time by which it must be read again.
  due_at timestamptz,
  -- When the feed last had a change.
  changed_at timestamptz,
  -- Records known to have changed and not read again yet.
  waiting integer not null default 0,
  waiting_since timestamptz,
  -- Records that a sweep found changed and the feed never reported.
  missed bigint not null default 0,
  missed_at timestamptz,
  -- When the replica was last compared with the source, and since when it was found to lag.
  compared_at timestamptz,
  drifted_since timestamptz,
  constraint live_feeds_pkey primary key (base_id),
  constraint live_feeds_base_fkey foreign key (base_id) references bases (id) on delete cascade,
  constraint live_feeds_state_check check (state in ('making', 'on', 'refused', 'failing')),
  constraint live_feeds_webhook_check check ((webhook_id is null) = (encrypted_secret is null))
) with (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_threshold = 1000);

-- What all bases know of an address that the source notifies (CONSOLE_URL). No row: nothing yet.
create table notification_addresses (
  address text not null,
  -- True: a notification has arrived there, for any base. False: before that, a change was found without one.
  is_proven boolean not null,
  constraint notification_addresses_pkey primary key (address)
);

-- Records that the source has written and a replica may not show yet: they are read again and applied.
create table repairs (
  base_id text not null,
  -- Identifies the table: by its id, its name as in the request's path, or the id of one of its fields.
  table_ref text not null,
  record_id text not null,
  recorded_at timestamptz not null default clock_timestamp(),
  attempts integer not null default 0,
  -- A claim postpones it, so that the claims of a crashed process become due again.
  due_at timestamptz not null default now(),
  -- Consecutive claims that were neither settled nor rescheduled: their processes crashed.
  unsettled integer not null default 0,
  constraint repairs_pkey primary key (base_id, table_ref, record_id),
  constraint repairs_base_fkey foreign key (base_id) references bases (id) on delete cascade
);

create index repairs_due_idx on repairs (due_at);
create trigger repairs_requested after insert on repairs for each statement execute function notify_channel('basetide_repairs');
create index repairs_unsettled_idx on repairs (base_id) where unsettled > 0;

-- Running processes: each updates its own row every few seconds, and deletes it when it stops. Unlogged, because a crash
-- empties it for those few seconds.
create unlogged table processes (
  id text not null,
  role text not null,
  version text not null,
  host text not null,
  pid integer not null,
  started_at timestamptz not null,
  seen_at timestamptz not null,
  -- Of a worker: bases leased now, and at most.
  bases integer not null default 0,
  capacity integer not null default 0,
  -- When the process first appeared, by this server's clock: a new worker is not given bases that others hold.
  joined_at timestamptz not null default now(),
  constraint processes_pkey primary key (id),
  constraint processes_role_check check (role in ('worker', 'proxy', 'console'))
) with (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_threshold = 1000);

-- Bases whose workers crashed while they held them: a suspect is synced in a process of its own.
create table base_crashes (
  base_id text not null,
  -- Consecutive workers that ended without releasing the base, except those that ran it in a process of its own.
  crashes integer not null default 0,
  -- Jobs that failed before then are already counted.
  counted_until timestamptz not null default '-infinity',
  -- When it became a suspect, or when its own process last crashed; null: not a suspect.
  suspected_at timestamptz,
  -- Number of bases in that process: if it was this one alone, the blame is exact.
  company integer,
  -- Consecutive crashes of processes with this base alone; the base is paused until quarantined_until.
  quarantines integer not null default 0,
  quarantined_until timestamptz,
  constraint base_crashes_pkey primary key (base_id),
  constraint base_crashes_base_fkey foreign key (base_id) references bases (id) on delete cascade
);

-- Processes that hold sync jobs (pgboss.job, `data.holder`). Each sends one heartbeat for all of its jobs. Unlogged: after a
-- crash, those that are alive add themselves again, and the jobs of all others fail.
create unlogged table job_holders (
  id text not null,
  seen_at timestamptz not null,
  constraint job_holders_pkey primary key (id)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_threshold = 1000);

-- Tasks that run once (a deletion, the end of a move), counted before they start: a remaining row belongs to a process
-- that crashed, or to a failure that is rescheduled.
create table task_attempts (
  task text not null,
  subject text not null,
  -- Consecutive runs that did not end.
  unended integer not null default 0,
  failures integer not null default 0,
  due_at timestamptz not null default now(),
  tried_at timestamptz not null default now(),
  constraint task_attempts_pkey primary key (task, subject)
);

-- ------------------------------------------------------------------------------------------------------------------ quota

-- The quota ledger: when each base of a source may be asked. A key is a source base, independent of the API key
-- ("airtable:appXXXX"), or a user of the source whose limit over all bases may matter. All times are milliseconds since 1970 by
-- this server's clock, as float8. These tables are changed only by functions/quota-*.sql, under the key's advisory lock.
-- Unlogged ones are empty after a crash: their content is worthless after a few seconds.

-- Since when the unlogged tables are as they are: a crash empties this one, too. One row.
create unlogged table quota_epochs (
  is_only boolean not null default true,
  opened_at float8 not null,
  constraint quota_epochs_pkey primary key (is_only),
  constraint quota_epochs_one_row check (is_only)
);
insert into quota_epochs (opened_at) values (0);

-- Processes that send requests; each sends a heartbeat once or twice a second. One that serves clients and that this server no
-- longer hears may be using `owed` permits of every key.
create unlogged table quota_holders (
  -- changes whenever the process has lost what it held; its channel for notifications
  session text not null,
  -- a proxy's host and port, which its replacement has, too; else the session
  name text not null,
  owed integer not null default 0,
  -- The process was alive at least until then ...
  seen_at float8 not null,
  -- ... and its last message arrived then.
  heard_at float8 not null,
  -- Until then it may be using what it is owed.
  owed_until float8 not null default 0,
  constraint quota_holders_pkey primary key (session)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_threshold = 1000);

create index quota_holders_name_idx on quota_holders (name);

-- What those that serve clients may be using after a crash of this server, until it hears them.
create table quota_proxies (
  name text constraint quota_proxies_pkey primary key,
  owed integer not null,
  owed_until float8 not null
) with (fillfactor = 50);

create unlogged table quota_keys (
  key text constraint quota_keys_pkey primary key,
  -- permits of a throttled key; null for a user
  throttled integer,
  blocked_until float8 not null default 0,
  -- recent times at which the source refused what should have been within its limit
  refused_at float8[] not null default '{}',
  -- all requests of the key at the last of them
  calls_at_refusal bigint not null default 0,
  -- the user whose limit over all keys the requests count toward, as a key; null where it does not matter
  user_id text
) with (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_threshold = 1000);

-- The permits of each key. Until rests_until, one that is free may not be used; of one that is held, its holder knows.
create unlogged table quota_permits (
  key text not null,
  number integer not null,
  session text,
  life integer,
  -- what it was granted for: 'client' or 'sync', and `most` of quota_wants
  kind text,
  most integer,
  rests_until float8 not null,
  constraint quota_permits_pkey primary key (key, number)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_threshold = 1000);

-- Processes that wait for permits: a row for each permit, in order of arrival.
create unlogged table quota_wants (
  key text not null,
  -- order of arrival. No sequence: a standby that is promoted cannot read one of an unlogged table
  id bigint not null,
  session text not null,
  life integer not null,
  kind text not null,
  most integer not null,
  since float8 not null,
  constraint quota_wants_pkey primary key (key, id)
);


-- Pauses that the source requested; survives a crash, and is shown to people.
create table quota_blocks (
  key text constraint quota_blocks_pkey primary key,
  reason text not null constraint quota_blocks_reason_known check (reason in ('rate_limited', 'billing_limit')),
  blocked_at timestamptz not null,
  blocked_until timestamptz not null
);

-- Calls per key and month (its first day, UTC); up to 10 s behind, and a crash loses those 10 s.
create table quota_calls (
  key text not null,
  month date not null,
  sync bigint not null default 0,
  client bigint not null default 0,
  constraint quota_calls_pkey primary key (key, month)
) with (fillfactor = 70);

-- Calls of sync by purpose, per key and month; up to 10 s behind. Keys `left:<workspace>` hold, here and in
-- quota_calls, the calls of deleted bases, which the source still counts.
create table quota_kinds (
  key text not null,
  month date not null,
  kind text not null,
  calls bigint not null,
  constraint quota_kinds_pkey primary key (key, month, kind)
) with (fillfactor = 70);

-- Calls of the last hour per key and minute, for display; up to 10 s behind. Unlogged, because a crash costs an hour of
-- a diagram; the month's calls, which are paid for, are logged.
create unlogged table quota_minutes (
  key text not null,
  minute timestamptz not null,
  sync integer not null default 0,
  client integer not null default 0,
  constraint quota_minutes_pkey primary key (key, minute)
) with (fillfactor = 70);

-- Calls per key and day (UTC), one element per hour, for charts; up to 10 s behind. Stored for 31 days.
create table quota_days (
  key text not null,
  day date not null,
  sync integer[] not null,
  client integer[] not null,
  constraint quota_days_pkey primary key (key, day)
) with (fillfactor = 50);

create index quota_days_day_idx on quota_days (day);

-- Of the calls of clients in quota_days, those of the callers with the most calls: at most ten a day. Up to 10 s behind.
create table quota_callers (
  key text not null,
  day date not null,
  -- 'own': the key that the base is synced with; 'console'; else the first letters of a client's key
  caller text not null,
  -- one element per hour
  calls integer[] not null,
  constraint quota_callers_pkey primary key (key, day, caller)
) with (fillfactor = 80);

create index quota_callers_day_idx on quota_callers (day);

-- Keys that the source answers only twice a second, as it does beyond a Team plan's cap; survives a crash.
create table quota_throttled (
  key text not null,
  -- '': concluded from the source's refusals; else the account that says so of its plan
  account_id text not null default '',
  since timestamptz not null,
  until timestamptz not null,
  -- Known from the workspace's calls, not only concluded from refusals.
  is_certain boolean not null,
  constraint quota_throttled_pkey primary key (key, account_id)
);

-- Hashes of the keys that the source has accepted for a base (core/keys/key-hash.ts); proxies share them.
create table accepted_keys (
  source_base_id text not null,
  key_hash text not null,
  accepted_at timestamptz not null default now(),
  constraint accepted_keys_pkey primary key (source_base_id, key_hash)
) with (fillfactor = 50);

create index accepted_keys_accepted_idx on accepted_keys (accepted_at);

-- ----------------------------------------------------------------------------------------------------------------- alerts

-- Alerts for customers about bases and call budgets, and each account's targets for them.
-- Tables without a primary key have a replica identity: a publication of all tables makes Postgres refuse updates and
-- deletes in tables that have neither.

-- When states were last evaluated; the evaluating process holds the row.
create table alert_clock (
  checked_at timestamptz not null
);
create unique index alert_clock_one_row on alert_clock ((true));
insert into alert_clock (checked_at) values ('-infinity');

-- The state per base or workspace and kind of alert, and what was last reported of it.
create table alert_states (
  base_id text,
  workspace_id text,
  kind text not null,
  state text not null default 'off',
  since timestamptz not null,
  -- The last reported state that people still believe to hold; null: there is nothing to retract.
  told text,
  reported_at timestamptz,
  -- How often it recurred within an hour.
  times integer not null default 0,
  -- schema_changed: the last change that was reported or is exempt.
  cursor bigint,
  constraint alert_states_key unique nulls not distinct (base_id, workspace_id, kind),
  constraint alert_states_base_fkey foreign key (base_id) references bases (id) on delete cascade,
  constraint alert_states_workspace_fkey foreign key (workspace_id) references workspaces (id) on delete cascade,
  constraint alert_states_subject_check check (num_nonnulls(base_id, workspace_id) = 1)
);
create index alert_states_workspace_idx on alert_states (workspace_id) where workspace_id is not null;

-- Kinds of alerts that a member wants by e-mail; without a row, the default ones.
create table alert_preferences (
  account_id text not null,
  user_id text not null,
  kinds text[] not null,
  constraint alert_preferences_pkey primary key (account_id, user_id),
  constraint alert_preferences_member_fkey foreign key (account_id, user_id)
    references account_members (account_id, user_id) on delete cascade
);

create table alert_webhooks (
  id text not null,
  account_id text not null,
  name text not null,
  form text not null,
  -- Encrypted below: the address may be a credential, as Slack's is.
  host text not null,
  encrypted_url text not null,
  encrypted_secret text not null,
  kinds text[] not null,
  is_on boolean not null default true,
  created_at timestamptz not null default now(),
  delivered_at timestamptz,
  -- Since when deliveries fail, and why; null: the last one succeeded.
  failing_since timestamptz,
  error text,
  constraint alert_webhooks_pkey primary key (id),
  constraint alert_webhooks_account_fkey foreign key (account_id) references accounts (id) on delete cascade,
  constraint alert_webhooks_form_check check (form in ('json', 'slack'))
);
comment on column alert_webhooks.encrypted_secret is 'signs its messages';
create index alert_webhooks_account_idx on alert_webhooks (account_id, created_at);

create table alerts (
  id bigint generated always as identity,
  account_id text not null,
  base_id text,
  workspace_id text,
  kind text not null,
  at timestamptz not null,
  -- The data that the text is generated from: name, reason, since when, how often.
  facts jsonb not null,
  constraint alerts_pkey primary key (id),
  constraint alerts_account_fkey foreign key (account_id) references accounts (id) on delete cascade,
  constraint alerts_base_fkey foreign key (base_id) references bases (id) on delete cascade,
  constraint alerts_workspace_fkey foreign key (workspace_id) references workspaces (id) on delete cascade,
  constraint alerts_kind_check check (
    kind in ('red', 'recovered', 'needs_attention', 'call_budget', 'new_table', 'proposal_waiting',
      'breaking_change', 'schema_changed'))
);
create index alerts_at_idx on alerts (at);
create index alerts_account_idx on alerts (account_id);
create index alerts_base_idx on alerts (base_id);
create index alerts_workspace_idx on alerts (workspace_id) where workspace_id is not null;

-- Messages to one target each: one alert, or several that occurred together.
create table alert_messages (
  id text not null,
  account_id text not null,
  user_id text,
  webhook_id text,
  at timestamptz not null,
  subject text not null,
  state text not null default 'waiting',
  attempts integer not null default 0,
  -- Why the last attempt failed, as text for people.
  error text,
  due_at timestamptz not null default now(),
  -- A process delivers it, which has died if it takes longer.
  held_until timestamptz,
  ended_at timestamptz,
  constraint alert_messages_pkey primary key (id),
  constraint alert_messages_member_fkey foreign key (account_id, user_id)
    references account_members (account_id, user_id) on delete cascade,
  constraint alert_messages_webhook_fkey foreign key (webhook_id) references alert_webhooks (id) on delete cascade,
  constraint alert_messages_account_fkey foreign key (account_id) references accounts (id) on delete cascade,
  constraint alert_messages_target_check check (num_nonnulls(user_id, webhook_id) = 1),
  constraint alert_messages_state_check check (state in ('waiting', 'sent', 'given_up', 'dropped'))
);
comment on column alert_messages.state is
  'given_up: all attempts failed; dropped: its target or its subject was deleted';
create index alert_messages_account_idx on alert_messages (account_id, at desc);
create index alert_messages_user_idx on alert_messages (user_id, at);
create index alert_messages_webhook_idx on alert_messages (webhook_id, at);
create index alert_messages_waiting_idx on alert_messages (at) where state = 'waiting';
create index alert_messages_at_idx on alert_messages (at);

-- Each alert goes to each target once: in one message, or not in one yet.
create table alert_notices (
  alert_id bigint not null,
  account_id text not null,
  user_id text,
  webhook_id text,
  message_id text,
  constraint alert_notices_key unique nulls not distinct (alert_id, user_id, webhook_id),
  constraint alert_notices_alert_fkey foreign key (alert_id) references alerts (id) on delete cascade,
  constraint alert_notices_member_fkey foreign key (account_id, user_id)
    references account_members (account_id, user_id) on delete cascade,
  constraint alert_notices_webhook_fkey foreign key (webhook_id) references alert_webhooks (id) on delete cascade,
  constraint alert_notices_message_fkey foreign key (message_id) references alert_messages (id) on delete cascade,
  constraint alert_notices_target_check check (num_nonnulls(user_id, webhook_id) = 1)
);
create index alert_notices_message_idx on alert_notices (message_id);
create index alert_notices_user_idx on alert_notices (user_id);
create index alert_notices_webhook_idx on alert_notices (webhook_id);
create index alert_notices_pending_idx on alert_notices (alert_id) where message_id is null;

alter table alert_clock replica identity full;
alter table alert_states replica identity full;
alter table alert_notices replica identity full;
alter table watchdog_clock replica identity full;

-- The limits of a source, as arguments of the quota functions: how many calls of a key it allows in a window, how many
-- if it has throttled the key, how many of one user over all keys, and the plans whose calls it does not cap. Each
-- process passes those of the key's platform (core/source/registry.ts).
create type source_limits as (
  window_ms float8,
  per_window integer,
  throttled_per_window integer,
  per_user integer,
  uncapped_plans text[]
);

-- ------------------------------------------------------------------------------------------------------------ functions

-- The version of functions/*.sql that is installed, and the functions that it consists of; one row.
create table installed_functions (
  version text not null,
  signatures text[] not null,
  installed_at timestamptz not null default now()
);
create unique index installed_functions_one_row on installed_functions ((true));
alter table installed_functions replica identity full;
