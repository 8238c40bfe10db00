-- People: who may sign in to the console, and which accounts they belong to. Until here an account had one password;
-- now its owner is a user, and others may be its members.
-- The tables up to rate_limits are those of the library for sign-in, under our names.

create table users (
  id text not null,
  name text not null,
  email text not null,
  email_verified boolean not null default false,
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

comment on column user_logins.account_id is 'the user''s id at the provider; the user''s own where provider_id is credential';
comment on column user_logins.password is 'argon2id, in the PHC string format';

create index user_logins_user_idx on user_logins (user_id);

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

comment on column sessions.token is 'opens nothing alone: the cookie carries it signed with a key that comes from SECRET_KEY';
comment on column sessions.account_id is 'the account that the session looks at; null: the user''s own';

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
  constraint account_members_role_check check (role in ('owner', 'member'))
);

create index account_members_user_idx on account_members (user_id);
-- An account has one owner; a user owns one account.
create unique index account_members_owner_key on account_members (account_id) where role = 'owner';
create unique index account_members_own_key on account_members (user_id) where role = 'owner';

create table invitations (
  id text not null,
  account_id text not null,
  email text not null,
  token_hash text not null,
  invited_by text,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  constraint invitations_pkey primary key (id),
  constraint invitations_account_fkey foreign key (account_id) references accounts (id) on delete cascade,
  constraint invitations_inviter_fkey foreign key (invited_by) references users (id) on delete set null,
  constraint invitations_email_key unique (account_id, email),
  constraint invitations_hash_key unique (token_hash)
);

comment on column invitations.token_hash is 'SHA-256 of the link''s token, in hex';

-- A base that is being connected: what its person has said so far, so that each step is a page of its own.
create table base_drafts (
  id text not null,
  account_id text not null,
  platform text not null,
  sealed_api_key text,
  choices jsonb,
  choices_at timestamptz,
  source_base_id text,
  source_base_name text,
  destination jsonb,
  sealed_url text,
  base_id text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint base_drafts_pkey primary key (id),
  constraint base_drafts_account_fkey foreign key (account_id) references accounts (id) on delete cascade,
  constraint base_drafts_base_fkey foreign key (base_id) references bases (id) on delete set null
);

comment on column base_drafts.choices is 'bases that the key opens, as the source listed them at choices_at';
comment on column base_drafts.destination is 'the destination as core/control takes it, an external one without its URL';
comment on column base_drafts.sealed_url is 'URL of an external destination';
comment on column base_drafts.base_id is 'the base that came of it; then nothing secret is left here';

create index base_drafts_account_idx on base_drafts (account_id, updated_at);

-- Accounts of before: their person is a user with the same password.
insert into users (id, name, email, email_verified, created_at)
select 'usr_' || substr(id, 5), split_part(email, '@', 1), lower(email), true, created_at from accounts;

insert into user_logins (id, user_id, provider_id, account_id, password, created_at)
select 'usl_' || substr(id, 5), 'usr_' || substr(id, 5), 'credential', 'usr_' || substr(id, 5), password_hash, created_at
from accounts;

insert into account_members (account_id, user_id, role, created_at)
select id, 'usr_' || substr(id, 5), 'owner', created_at from accounts;

alter table accounts drop column password_hash;
