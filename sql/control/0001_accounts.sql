-- Who may use the management API: accounts and their bearer tokens.

create table accounts (
  id text not null,
  email text not null,
  password_hash text not null,
  is_operator boolean not null default false,
  created_at timestamptz not null default now(),
  constraint accounts_pkey primary key (id)
);

comment on column accounts.password_hash is 'argon2id, in the PHC string format';

-- One account per address, however it is capitalised.
create unique index accounts_email_key on accounts (lower(email));

create table api_tokens (
  id text not null,
  account_id text not null,
  name text not null,
  token_hash text not null,
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  constraint api_tokens_pkey primary key (id),
  constraint api_tokens_account_fkey foreign key (account_id) references accounts (id) on delete cascade,
  constraint api_tokens_hash_key unique (token_hash)
);

comment on column api_tokens.token_hash is 'SHA-256 of the token, in hex; a token is 32 random bytes, so no salt is needed';
comment on column api_tokens.last_used_at is 'to the hour, so that using a token is not a write each time';

create index api_tokens_account_idx on api_tokens (account_id);
