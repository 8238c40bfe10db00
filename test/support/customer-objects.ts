/**
 * Objects that customers create on a replicated table, one of each kind: the statement that creates it, the state that
 * is compared (`state`: equal before and after a change, or the object is lost), and the issue that is reported if the
 * object cannot be carried over.
 *
 * The table is `airtable.orders` with the columns price (number), note (text), tags (text[]), spare and last (text).
 */
export interface CustomerObject {
  kind: string;
  /** The role that creates it; the owner of the database unless given. */
  by?: "other" | "admin";
  make: string;
  /** An expression; null if the object no longer exists. */
  state: string;
  /** `table_name|field` of its issue. */
  issue: RegExp;
  /** Columns that it depends on. */
  uses?: string[];
}

/** Run before all others. OTHER: the other role. */
export const PREPARATION = `
  create table airtable.regions (id text primary key);
  create table airtable.log (id text);
  create function airtable.slug(v text) returns text language sql immutable as 'select lower(v)';
  create function airtable.note_row() returns trigger language plpgsql as
    $$ begin insert into airtable.log values (new.id); return new; end $$;
  grant usage, create on schema airtable to OTHER;
  grant select, references, insert on airtable.orders to OTHER;
  grant select (price), update (note) on airtable.orders to OTHER with grant option`;

const ORDERS = "'airtable.orders'::regclass";
const definition = (kind: string, catalog: string, of: string) =>
  `(select ${kind} from ${catalog} where ${of})`;
const indexDefinition = (name: string) => `(select pg_get_indexdef(to_regclass('airtable.${name}')))`;
const constraint = (name: string) =>
  definition(
    "pg_get_constraintdef(oid) || coalesce(obj_description(oid, 'pg_constraint'), '')",
    "pg_constraint",
    `conrelid = ${ORDERS} and conname = '${name}'`,
  );
const trigger = (name: string) =>
  definition(
    "pg_get_triggerdef(oid) || tgenabled::text || coalesce(obj_description(oid, 'pg_trigger'), '')",
    "pg_trigger",
    `tgrelid = ${ORDERS} and tgname = '${name}'`,
  );
const policy = (name: string) =>
  definition(
    "concat(cmd, roles, qual, with_check, permissive)",
    "pg_policies",
    `schemaname = 'airtable' and tablename = 'orders' and policyname = '${name}'`,
  );
const published = (name: string) =>
  definition(
    "concat(attnames, rowfilter)",
    "pg_publication_tables",
    `pubname = '${name}' and schemaname = 'airtable' and tablename = 'orders'`,
  );
const column = (name: string, what: string) =>
  definition(what, "pg_attribute", `attrelid = ${ORDERS} and attname = '${name}' and not attisdropped`);
const comment = (what: string) => `(select ${what})`;
/** Returns an expression for whether the object shows the rows that are in the table now. */
const fresh = (query: string) =>
  `(select case when (${query}) = (select count(*) from airtable.orders) then 'as the table' end)`;
const reference = (table: string, name: string) =>
  `(select case when confrelid = ${ORDERS} then pg_get_constraintdef(oid) end from pg_constraint
    where conrelid = to_regclass('${table}') and conname = '${name}')`;

export const OBJECTS: CustomerObject[] = [
  {
    kind: "index",
    make: "create index o_btree on airtable.orders (price desc nulls last) include (spare); comment on index airtable.o_btree is 'mine'",
    state: `${indexDefinition("o_btree")} || obj_description('airtable.o_btree'::regclass)`,
    issue: /^orders\|(comment on )?index o_btree/,
    uses: ["price", "spare"],
  },
  {
    kind: "unique index",
    make: "create unique index o_unique on airtable.orders (note, id) with (fillfactor = 70)",
    state: indexDefinition("o_unique"),
    issue: /^orders\|index o_unique/,
    uses: ["note"],
  },
  {
    kind: "GIN index",
    make: "create index o_gin on airtable.orders using gin (tags)",
    state: indexDefinition("o_gin"),
    issue: /^orders\|index o_gin/,
    uses: ["tags"],
  },
  {
    kind: "partial index over a function",
    make: "create index o_slug on airtable.orders (airtable.slug(note)) where price > 0",
    state: indexDefinition("o_slug"),
    issue: /^orders\|index o_slug/,
    uses: ["note", "price"],
  },
  {
    kind: "check constraint",
    make: "alter table airtable.orders add constraint o_check check (price < 1000); comment on constraint o_check on airtable.orders is 'mine'",
    state: constraint("o_check"),
    issue: /^orders\|constraint o_check/,
    uses: ["price"],
  },
  {
    kind: "unique constraint",
    make: "alter table airtable.orders add constraint o_only unique (id, spare) deferrable",
    state: constraint("o_only"),
    issue: /^orders\|constraint o_only/,
    uses: ["spare"],
  },
  {
    kind: "exclusion constraint",
    make: "alter table airtable.orders add constraint o_exclude exclude using btree (id with =) where (note is not null)",
    state: constraint("o_exclude"),
    issue: /^orders\|constraint o_exclude/,
    uses: ["note"],
  },
  {
    kind: "not null",
    make: "alter table airtable.orders alter column note set not null",
    state: column("note", "nullif(attnotnull::text, 'false')"),
    issue: /^orders\|(not null|constraint orders_note_not_null|constraint tbl.*note_not_null)/,
    uses: ["note"],
  },
  {
    kind: "default of a column",
    make: "alter table airtable.orders alter column spare set default 'none'",
    state: `(select pg_get_expr(adbin, adrelid) from pg_attrdef join pg_attribute on (attrelid, attnum) = (adrelid, adnum)
      where adrelid = ${ORDERS} and attname = 'spare')`,
    issue: /^orders\|default spare/,
    uses: ["spare"],
  },
  {
    kind: "own column, with values",
    make: "alter table airtable.orders add column mine int default 7; update airtable.orders set mine = 42",
    state: "(select max(mine)::text || min(mine)::text from airtable.orders where id = 'rec1')",
    issue: /^orders\|column mine/,
  },
  {
    kind: "own column with an identity",
    make: "alter table airtable.orders add column n bigint generated always as identity (start with 100)",
    state: `(select max(n)::text || (select attidentity::text from pg_attribute where attrelid = ${ORDERS} and attname = 'n')
      from airtable.orders where id = 'rec1')`,
    issue: /^orders\|(column|identity) n/,
  },
  {
    kind: "own serial column",
    make: "alter table airtable.orders add column s serial",
    state: "(select min(s)::text from airtable.orders where id = 'rec1')",
    issue: /^orders\|column s/,
  },
  {
    kind: "generated column",
    make: "alter table airtable.orders add column total numeric generated always as (price * 2) stored",
    state: "(select min(total)::text from airtable.orders where id = 'rec1')",
    issue: /^orders\|column total/,
    uses: ["price"],
  },
  {
    kind: "foreign key to a table of the customer",
    make: "alter table airtable.orders add column region text; alter table airtable.orders add constraint o_region foreign key (region) references airtable.regions (id)",
    state: constraint("o_region"),
    issue: /^orders\|constraint o_region/,
  },
  {
    kind: "grants on the table",
    make: "grant delete on airtable.orders to OTHER",
    state: `(select string_agg(privilege_type, ',' order by privilege_type) from pg_class, aclexplode(relacl) as a
      where oid = ${ORDERS} and a.grantee = 'OTHER'::regrole)`,
    issue: /^orders\|grant (select|insert|delete|references) to/,
  },
  {
    kind: "grant on a column",
    make: "grant select (spare) on airtable.orders to OTHER with grant option",
    state: column("spare", "attacl::text"),
    issue: /^orders\|grant select \(spare\)/,
    uses: ["spare"],
  },
  {
    kind: "row-level security, policy",
    make: "create policy o_all on airtable.orders to OTHER using (airtable.slug(note) is not null); alter table airtable.orders enable row level security",
    state: `${policy("o_all")} || (select relrowsecurity::text from pg_class where oid = ${ORDERS})`,
    issue: /^orders\|policy o_all/,
    uses: ["note"],
  },
  {
    kind: "restrictive policy",
    make: "create policy o_cheap on airtable.orders as restrictive for select to OTHER using (spare is not null); comment on policy o_cheap on airtable.orders is 'mine'",
    state: policy("o_cheap"),
    issue: /^orders\|policy o_cheap/,
    uses: ["note", "spare"],
  },
  {
    kind: "trigger",
    make: "create trigger o_trigger after insert or update of price on airtable.orders for each row when (new.price > 0) execute function airtable.note_row(); comment on trigger o_trigger on airtable.orders is 'mine'",
    state: trigger("o_trigger"),
    issue: /^orders\|trigger o_trigger/,
    uses: ["price"],
  },
  {
    kind: "disabled trigger",
    make: "create trigger o_off before update on airtable.orders for each row execute function airtable.note_row(); alter table airtable.orders disable trigger o_off",
    state: trigger("o_off"),
    issue: /^orders\|trigger o_off/,
  },
  {
    kind: "trigger that runs another role's function",
    make: "create trigger o_theirs after insert on airtable.orders for each row execute function airtable.theirs()",
    state: trigger("o_theirs"),
    issue: /^orders\|trigger o_theirs/,
  },
  {
    kind: "constraint trigger",
    make: "create constraint trigger o_deferred after insert on airtable.orders deferrable initially deferred for each row execute function airtable.note_row()",
    state: trigger("o_deferred"),
    issue: /^orders\|trigger o_deferred/,
  },
  {
    kind: "rule",
    make: "create rule o_rule as on delete to airtable.orders do also insert into airtable.log values (old.id)",
    state: definition("pg_get_ruledef(oid)", "pg_rewrite", `ev_class = ${ORDERS} and rulename = 'o_rule'`),
    issue: /^orders\|rule o_rule/,
  },
  {
    kind: "publication of the table",
    make: "create publication o_pub_TAG for table airtable.orders",
    state: `(select case when ${published("o_pub_TAG")} is not null then 'published' end)`,
    issue: /^orders\|publication o_pub_/,
  },
  {
    kind: "publication with columns and a filter",
    make: "create publication o_some_TAG for table airtable.orders (id, note) where (id <> 'x')",
    state: published("o_some_TAG"),
    issue: /^orders\|publication o_some_/,
    uses: ["note"],
  },
  {
    kind: "publication of the schema",
    by: "admin",
    make: "create publication o_schema_TAG for tables in schema airtable",
    state: `(select case when ${published("o_schema_TAG")} is not null then 'published' end)`,
    issue: /^orders\|publication o_schema_/,
  },
  {
    kind: "publication of another role",
    by: "admin",
    make: "create publication o_foreign_TAG for table airtable.orders",
    state: `(select case when ${published("o_foreign_TAG")} is not null then 'published' end)`,
    issue: /^orders\|publication o_foreign_/,
  },
  {
    kind: "replica identity",
    make: "create unique index o_identity on airtable.orders (id); alter table airtable.orders replica identity using index o_identity",
    state: definition("nullif(relreplident, 'd')::text", "pg_class", `oid = ${ORDERS}`),
    issue: /^orders\|replica identity/,
  },
  {
    kind: "cluster on an index",
    make: "create index o_cluster on airtable.orders (created_time); alter table airtable.orders cluster on o_cluster",
    state: definition("indexrelid::regclass::text", "pg_index", `indrelid = ${ORDERS} and indisclustered`),
    issue: /^orders\|cluster/,
  },
  {
    kind: "extended statistics",
    make: "create statistics airtable.o_stats (ndistinct) on note, created_time from airtable.orders; alter statistics airtable.o_stats set statistics 50; comment on statistics airtable.o_stats is 'mine'",
    state: `(select pg_get_statisticsobjdef(oid) || stxstattarget || obj_description(oid, 'pg_statistic_ext') from pg_statistic_ext where stxname = 'o_stats' and stxrelid = ${ORDERS})`,
    issue: /^orders\|(comment on )?statistics o_stats/,
    uses: ["note"],
  },
  {
    kind: "storage parameters",
    make: "alter table airtable.orders set (fillfactor = 80, toast.autovacuum_enabled = off)",
    state: `(select c.reloptions::text || t.reloptions::text from pg_class as c join pg_class as t on t.oid = c.reltoastrelid where c.oid = ${ORDERS})`,
    issue: /^orders\|storage parameters/,
  },
  {
    kind: "options of a column",
    make: "alter table airtable.orders alter column spare set statistics 500, alter column spare set (n_distinct = 5), alter column spare set storage external, alter column spare set compression pglz",
    state: column("spare", "concat(attstattarget, attoptions, attstorage, attcompression)"),
    issue: /^orders\|(column options|storage|compression) spare/,
    uses: ["spare"],
  },
  {
    kind: "planner's statistics",
    make: "analyze airtable.orders",
    state: "(select 'analyzed' from pg_stats where schemaname = 'airtable' and tablename = 'orders' limit 1)",
    issue: /^never$/,
  },
  {
    kind: "comments",
    make: "comment on table airtable.orders is 'my table'; comment on column airtable.orders.spare is 'my column'; comment on column airtable.orders.id is 'my id'",
    state:
      comment(`obj_description(${ORDERS}) || col_description(${ORDERS}, 1) || (select col_description(attrelid, attnum)
      from pg_attribute where attrelid = ${ORDERS} and attname = 'spare')`),
    issue: /^orders\|comment/,
    uses: ["spare"],
  },
  {
    kind: "foreign key from a table of the customer",
    make: "create table airtable.lines (id text constraint l_fk references airtable.orders (id) on delete cascade); insert into airtable.lines values ('rec1')",
    state: reference("airtable.lines", "l_fk"),
    issue: /^constraint l_fk on table/,
  },
  {
    kind: "foreign key from another role's table",
    by: "other",
    make: "create schema theirs; create table theirs.lines (id text constraint t_fk references airtable.orders (id))",
    state: reference("theirs.lines", "t_fk"),
    issue: /^constraint t_fk on table/,
  },
  {
    kind: "view",
    make: "create view airtable.v as select id, note from airtable.orders; grant select on airtable.v to OTHER",
    state: `${fresh("select count(*) from airtable.v")} || has_table_privilege('OTHER', 'airtable.v', 'select')`,
    issue: /^airtable\.v\|/,
    uses: ["note"],
  },
  {
    kind: "view with security_invoker",
    make: "create view airtable.vi with (security_invoker = true) as select id, spare from airtable.orders",
    state: `${fresh("select count(*) from airtable.vi")} || (select reloptions::text from pg_class where oid = 'airtable.vi'::regclass)`,
    issue: /^airtable\.vi\|/,
    uses: ["spare"],
  },
  {
    kind: "materialized view with an index",
    make: "create materialized view airtable.mv as select id, note from airtable.orders; create unique index mv_id on airtable.mv (id)",
    state:
      "(select indexrelid::regclass::text || (select count(*) > 0 from airtable.mv) from pg_index where indrelid = to_regclass('airtable.mv'))",
    issue: /^airtable\.mv\|/,
    uses: ["note"],
  },
  {
    kind: "view of another role",
    by: "other",
    make: "create view theirs.v as select id, note from airtable.orders",
    state: fresh("select count(*) from theirs.v"),
    issue: /^theirs\.v\|/,
    uses: ["note"],
  },
  {
    kind: "function begin atomic",
    make: "create function airtable.f_atomic() returns bigint begin atomic select count(note) from airtable.orders; end; grant execute on function airtable.f_atomic() to OTHER",
    state: fresh("select airtable.f_atomic()"),
    issue: /^function airtable\.f_atomic/,
    uses: ["note"],
  },
  {
    kind: "function returns setof",
    make: "create function airtable.f_setof() returns setof airtable.orders stable language sql as 'select * from airtable.orders'; comment on function airtable.f_setof() is 'mine'",
    state: `${fresh("select count(*) from airtable.f_setof()")} || obj_description('airtable.f_setof()'::regprocedure)`,
    issue: /^function airtable\.f_setof/,
  },
  {
    kind: "function that takes a row",
    make: "create function airtable.f_row(o airtable.orders) returns text language sql as 'select o.id'; revoke all on function airtable.f_row(airtable.orders) from public",
    state:
      "(select max(airtable.f_row(o)) || (select proacl::text from pg_proc where oid = 'airtable.f_row(airtable.orders)'::regprocedure) from airtable.orders as o where id = 'rec1')",
    issue: /^function airtable\.f_row/,
  },
  {
    kind: "function with a text body",
    make: "create function airtable.f_text() returns bigint language sql as 'select count(*) from airtable.orders'",
    state: fresh("select airtable.f_text()"),
    issue: /^never$/,
  },
  {
    kind: "procedure",
    make: "create procedure airtable.p_row(o airtable.orders) language plpgsql as 'begin end'",
    state: "(select to_regprocedure('airtable.p_row(airtable.orders)')::text)",
    issue: /^(function|procedure) airtable\.p_row/,
  },
  {
    kind: "column of the row type",
    make: "create table airtable.snapshots (o airtable.orders)",
    state: `(select atttypid::regtype::text from pg_attribute where attrelid = 'airtable.snapshots'::regclass and attname = 'o'
      and atttypid = 'airtable.orders'::regtype)`,
    issue: /^column o of table airtable\.snapshots/,
  },
  {
    kind: "inheritance child",
    make: "create table airtable.kid () inherits (airtable.orders)",
    state: `(select 'child' from pg_inherits where inhrelid = 'airtable.kid'::regclass and inhparent = ${ORDERS})`,
    issue: /^table airtable\.kid/,
  },
];
