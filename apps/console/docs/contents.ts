/** The pages of the documentation, in the order of the table of contents: a line for each page, in groups. */

interface ContentsGroup {
  title: string;
  pages: ContentsEntry[];
}

interface ContentsEntry {
  /** In the repository. */
  file: string;
  title: string;
  /** What a reader finds there. */
  about: string;
}

const CONTENTS = `
# Start
README.md | Quick start | Run it with a simulated Airtable, connect a base, query it, write to it.
docs/concepts.md | Concepts | The ideas behind Basetide, in the order in which you meet them.
docs/syncing.md | How it syncs | Live mode, rapid mode, sweeps, call budgets, and all settings of a base.
docs/glossary.md | Glossary | Every term, defined in one sentence.

# Query your data
docs/sql.md | SQL guide | Joins over links, freshness, history, notifications, indexes, dumps.
docs/types.md | Names and types | How tables and fields are named, and the column type of each field type.
docs/names.md | Stable names | Pinned names, names of your own, old names, and changes of the schema.
docs/types-in-code.md | Types in code | TypeScript, Zod, Kysely, Drizzle, Prisma, Python, JSON Schema and dbt, generated from your tables.
docs/graphql-and-rest.md | GraphQL and REST | Serve your tables with PostgREST, PostGraphile or Hasura, with links as relations.
docs/customer-objects.md | Your own objects | What happens to your views, indexes and triggers when a table changes.
docs/attachments.md | Attachments | Links to attachments that do not expire.
docs/selection.md | Choose what is copied | Tables, views and fields; omitted and hashed fields.

# Write
docs/proxy.md | Proxy guide | Read your writes with Airtable's API: clients, headers, limits, errors.
docs/sql-writes.md | Writes with SQL | Insert, update and delete from any SQL client, with Airtable's errors, and rollbacks.
docs/sql-writes-tools.md | Writes from frameworks and tools | What to set in Prisma, Django, Rails, SQLAlchemy, Retool, Metabase and dbt.
docs/change-sets.md | Change sets | Change many records at once, with a result for each, a review, and a way back.

# AI agents
docs/agents.md | Agents | Let an AI client read your bases by SQL, as a SQL user of its own, and propose changes.

# Your account
docs/accounts.md | Accounts | Sign-in, members, API tokens, limits and the activity log.
docs/alerts.md | Alerts | Notifications by e-mail and webhook.
docs/errors.md | Error codes | Every error with its cause and its remedy.
docs/cli.md | Command line | The commands of basetide, and the account as a file.

# Your own Postgres
docs/platforms/README.md | Platforms | What Basetide needs on a server that you host, and the role for it.
docs/platforms/rds.md | RDS and Aurora | Set up a destination on Amazon RDS or Aurora.
docs/platforms/cloud-sql.md | Cloud SQL | Set up a destination on Google Cloud SQL.
docs/platforms/azure.md | Azure | Set up a destination on Azure Database for PostgreSQL.
docs/platforms/supabase.md | Supabase | Set up a destination on Supabase.
docs/platforms/neon.md | Neon | Set up a destination on Neon.
docs/platforms/aiven-digitalocean.md | Aiven, DigitalOcean | Set up a destination on Aiven or DigitalOcean.
docs/platforms/crunchy-cnpg.md | Crunchy, CloudNativePG | Set up a destination on Crunchy Bridge or CloudNativePG.
docs/platforms/docker.md | Docker | Set up a destination in a container.
docs/compatibility.md | Compatibility | Versions of Postgres, rights and kinds of connections that are tested.

# Operate
docs/operations.md | Operating | Run Basetide in production: containers, Kubernetes, systemd, servers, backups.
docs/upgrade.md | Upgrade | Replace a running version by the next one, and go back.
docs/configuration.md | Configuration | All environment variables.
docs/metrics.md | Metrics | Prometheus metrics of each process, dashboards and alert rules.
docs/runbook.md | Runbook | What to do for each alert.
docs/scaling.md | Scaling | Bottlenecks, and how to get past them.
docs/performance.md | Performance | CPU and latency of a worker and a proxy, and how they are measured.
docs/memory.md | Memory | What the memory of a worker holds, and its limit.
docs/security.md | Security | The threat model: what is protected against whom, and the tests that hold it.

# Evaluate
docs/comparison.md | Comparison | Basetide next to other ways to get Airtable into SQL.
docs/migration.md | Migrating from Sequin | Move from Sequin's Airtable sync.
CHANGELOG.md | Changelog | What each version brings.

# Contribute
CONTRIBUTING.md | Contributing | Run, test and change the code.
docs/architecture.md | Architecture | Processes, layers, the paths of a change into SQL, and the invariants.
docs/adr/README.md | Decisions | Why it is built this way.
docs/adr/1-read-versions.md | 1. Read versions | Why no sync can undo a write.
docs/adr/2-one-statement-writes.md | 2. One-statement writes | Why a write is one statement.
docs/adr/3-permits.md | 3. Permits | Why a base has five permits, and who holds them.
docs/adr/4-fingerprints-in-memory.md | 4. Fingerprints | Why unchanged records cost almost nothing.
docs/adr/5-names-by-id.md | 5. Names by id | Why names stay with their fields.
docs/adr/6-connected-reservations.md | 6. Connected requests | How requests keep their distance over a network.
docs/adr/7-in-place-changes.md | 7. Changes in place | Why a live table is never replaced.
docs/adr/8-due-items.md | 8. Due items | Why one failure stops one item.
docs/adr/9-gateway.md | 9. A gateway | Why customers' servers are read by another process.
docs/adr/10-resources.md | 10. Resources | Why the API and the forms are said in one place.
core/sync/modes/live/SPEC.md | Live mode, specified | The rules of live mode, and what each prevents.
docs/testing.md | Testing on a network | The simulated network and the faults of the tests.
patches/README.md | Patches | Changes to dependencies, and why.
findings/README.md | Findings | Surprises of other software, as scripts.
`;

export const contents = CONTENTS.trim().split("\n\n").map(groupOf);

function groupOf(lines: string): ContentsGroup {
  const [title, ...pages] = lines.split("\n");
  return { title: title!.replace("# ", ""), pages: pages.map(entryOf) };
}

function entryOf(line: string): ContentsEntry {
  const [file, title, about] = line.split(" | ") as [string, string, string];
  return { file, title, about };
}
