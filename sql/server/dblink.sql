-- Creates dblink for SQL writes, in a schema that only {{role}}, the cluster's admin, may use. Run by a superuser, or by an
-- admin who may create the extension; idempotent.
create schema if not exists basetide_dblink;
create extension if not exists dblink schema basetide_dblink;
revoke all on schema basetide_dblink from public;
revoke all on all functions in schema basetide_dblink from public;
grant usage on schema basetide_dblink to {{role}} with grant option;
grant execute on all functions in schema basetide_dblink to {{role}} with grant option;
