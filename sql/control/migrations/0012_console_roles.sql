-- The console logs in to hosted databases with a role of its own, and to a database that a customer hosts with a second
-- URL that can only read, if its owner has given one.
alter table databases
  add column encrypted_console_password text,
  add column encrypted_reader_url text,
  add column accepts_privileges boolean not null default false,
  add constraint databases_reader_check check (
    case when cluster_id is null then encrypted_console_password is null
      else encrypted_reader_url is null and not accepts_privileges end);

comment on column databases.encrypted_console_password is
  'of the role that the console logs in with; null: it gets one when it is next needed';
comment on column databases.encrypted_reader_url is
  'URL of a customer''s own database with which members without the right to see credentials read it';
comment on column databases.accepts_privileges is
  'its owner has confirmed a URL whose role has more rights than its own database, such as a superuser''s';
