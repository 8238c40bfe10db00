-- Up Migration

-- What people are told of bases and call budgets without having to look, and where each account wants that to go.

-- When states were last looked at; whoever looks holds the row.
create table alert_clock (
  looked_at timestamptz not null
);
create unique index alert_clock_one_row on alert_clock ((true));
insert into alert_clock (looked_at) values ('-infinity');

-- What is, and what people were told of it: per base or workspace, and kind of alert.
create table alert_states (
  base_id text,
  workspace_id text,
  kind text not null,
  state text not null default 'off',
  since timestamptz not null,
  -- The state that was told last, and still holds as far as people know; null: there is nothing to take back.
  told text,
  told_at timestamptz,
  -- How often it came, never an hour apart.
  times integer not null default 0,
  -- schema_changed: the last change that was told, or that is not to be.
  cursor bigint,
  constraint alert_states_key unique nulls not distinct (base_id, workspace_id, kind),
  constraint alert_states_base_fkey foreign key (base_id) references bases (id) on delete cascade,
  constraint alert_states_workspace_fkey foreign key (workspace_id) references workspaces (id) on delete cascade,
  constraint alert_states_subject_check check (num_nonnulls(base_id, workspace_id) = 1)
);
create index alert_states_workspace_idx on alert_states (workspace_id) where workspace_id is not null;

-- Who wants to be told of what by e-mail; without a row, what is usual.
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
  -- The address itself may open a door, as Slack's do.
  host text not null,
  sealed_url text not null,
  sealed_secret text not null,
  kinds text[] not null,
  is_on boolean not null default true,
  created_at timestamptz not null default now(),
  delivered_at timestamptz,
  -- Since when nothing arrives, and why; null: the last message did arrive.
  failing_since timestamptz,
  error text,
  constraint alert_webhooks_pkey primary key (id),
  constraint alert_webhooks_account_fkey foreign key (account_id) references accounts (id) on delete cascade,
  constraint alert_webhooks_form_check check (form in ('json', 'slack'))
);
comment on column alert_webhooks.sealed_secret is 'what its messages are signed with';
create index alert_webhooks_account_idx on alert_webhooks (account_id, created_at);

create table alerts (
  id bigint generated always as identity,
  account_id text not null,
  base_id text,
  workspace_id text,
  kind text not null,
  at timestamptz not null,
  -- What the words are made of: name, reason, since when, how often.
  facts jsonb not null,
  constraint alerts_pkey primary key (id),
  constraint alerts_account_fkey foreign key (account_id) references accounts (id) on delete cascade,
  constraint alerts_base_fkey foreign key (base_id) references bases (id) on delete cascade,
  constraint alerts_workspace_fkey foreign key (workspace_id) references workspaces (id) on delete cascade,
  constraint alerts_kind_check check (
    kind in ('red', 'recovered', 'needs_attention', 'call_budget', 'schema_changed'))
);
create index alerts_at_idx on alerts (at);
create index alerts_account_idx on alerts (account_id);
create index alerts_base_idx on alerts (base_id);
create index alerts_workspace_idx on alerts (workspace_id) where workspace_id is not null;

-- Messages to one target each: one alert, or several that came together.
create table alert_messages (
  id text not null,
  -- Of the queue: a message is queued under one id however often that is tried.
  job_id uuid not null default gen_random_uuid(),
  account_id text not null,
  user_id text,
  webhook_id text,
  at timestamptz not null,
  subject text not null,
  state text not null default 'waiting',
  attempts integer not null default 0,
  -- Why it did not arrive the last time, in words for people.
  error text,
  queued_at timestamptz,
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
  'given_up: tried again and again in vain; dropped: its target or what it tells of is not there any more';
create index alert_messages_account_idx on alert_messages (account_id, at desc);
create index alert_messages_user_idx on alert_messages (user_id, at);
create index alert_messages_webhook_idx on alert_messages (webhook_id, at);
create index alert_messages_unqueued_idx on alert_messages (at) where queued_at is null;
create index alert_messages_at_idx on alert_messages (at);

-- Each alert goes to each target once: in one message, or none yet.
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

-- Down Migration

drop table alert_notices, alert_messages, alerts, alert_webhooks, alert_preferences, alert_states, alert_clock;
