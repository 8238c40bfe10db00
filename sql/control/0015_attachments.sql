-- Up Migration

-- Attachments by URLs of ours, which do not end as the source's do.
alter table bases
  add column own_attachment_urls boolean not null default false,
  add column sealed_attachment_key text,
  add column attachment_key_version integer not null default 0;

comment on column bases.own_attachment_urls is 'attachments are stored as URLs of the console, which leads to fresh ones of the source';
comment on column bases.sealed_attachment_key is 'signs those URLs; kept while the setting is off, for what was handed out before';
comment on column bases.attachment_key_version is 'another one for another key: rows that were signed with an older one are written anew';

-- Down Migration

alter table bases
  drop column own_attachment_urls, drop column sealed_attachment_key, drop column attachment_key_version;
