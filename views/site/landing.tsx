/** The landing page: what Basetide is, a picture of it, and the ways in. */
import { CodeBlock } from "../docs/code-block";
import { LandingPicture } from "./landing-picture";

const FEATURES: { title: string; text: string; href: string; link: string }[] = [
  {
    title: "Real tables",
    text: "One Postgres table per Airtable table, one typed column per field: dates, numbers, arrays of links, with keys and comments. A renamed field renames its column.",
    href: "/docs/types",
    link: "Names and types",
  },
  {
    title: "About a second behind",
    text: "Basetide follows Airtable's feed of changes and re-checks every record in the background. Each base shows how fresh its data is.",
    href: "/docs/syncing",
    link: "How it syncs",
  },
  {
    title: "Read your writes",
    text: "Point your programs at the proxy and keep Airtable's API. When a write is answered, SQL shows it already.",
    href: "/docs/proxy",
    link: "Proxy guide",
  },
  {
    title: "Any SQL client",
    text: "Metabase, Grafana, dbt, Excel, your own code. Joins, window functions and indexes, and not one Airtable call per query.",
    href: "/docs/sql",
    link: "SQL guide",
  },
  {
    title: "Within your limits",
    text: "Five requests a second per base, and a monthly call budget with a forecast. Your apps go first; sync takes the rest.",
    href: "/docs/syncing#the-call-budget",
    link: "Call budgets",
  },
  {
    title: "Your Postgres, if you like",
    text: "We host a database per base, or write into yours: RDS, Cloud SQL, Azure, Supabase, Neon, or plain Docker.",
    href: "/docs/platforms",
    link: "Platforms",
  },
];

const WRITE = `# The API that you know, at another address
curl -X PATCH "$PROXY/api.airtable.com/v0/$BASE/Tasks/$RECORD" \\
  -H "Authorization: Bearer $AIRTABLE_TOKEN" \\
  -H 'content-type: application/json' \\
  -d '{"fields": {"Status": "Done"}}'`;

const READ = `-- The next statement shows it
select p.name, count(*) filter (where t.status = 'Done') as done
from projects p
join tasks t on t.id = any (p.tasks)
group by p.name
order by done desc;`;

export function Landing({ canSignUp }: { canSignUp: boolean }) {
  return (
    <main id="main" class="landing" tabIndex={-1}>
      <section class="landing-hero">
        <h1>Your Airtable base, live in Postgres</h1>
        <div class="landing-pitch">
          <p>
            Every table of your base as a typed Postgres table, about a second behind Airtable. Query it with
            any SQL client. Write with Airtable's API, and the next SELECT shows it.
          </p>
        </div>
        <WaysIn canSignUp={canSignUp} />
        <LandingPicture />
      </section>

      <section class="landing-section" aria-labelledby="features">
        <h2 id="features">A copy that you can trust</h2>
        <ul class="landing-features">
          {FEATURES.map(({ title, text, href, link }) => (
            <li key={href}>
              <h3>{title}</h3>
              <p>{text}</p>
              <a href={href}>
                {link}
                <span aria-hidden="true"> →</span>
              </a>
            </li>
          ))}
        </ul>
      </section>

      <section class="landing-section landing-code" aria-labelledby="write-then-read">
        <div>
          <h2 id="write-then-read">Write to Airtable. Read from Postgres.</h2>
          <p>
            The copy is one-way, so there are no conflicts to resolve. Put the proxy's address in front of
            Airtable's host: creates, updates and deletes go to Airtable and are in SQL before you get the
            answer.
          </p>
          <p>
            <a href="/docs/proxy">Read the proxy guide</a>
          </p>
        </div>
        <div class="landing-programs">
          <CodeBlock code={WRITE} language="sh" />
          <CodeBlock code={READ} language="sql" />
        </div>
      </section>

      <section class="landing-end" aria-labelledby="start">
        <h2 id="start">Connect a base: 10,000 records take about 35 seconds</h2>
        <WaysIn canSignUp={canSignUp} />
      </section>
    </main>
  );
}

function WaysIn({ canSignUp }: { canSignUp: boolean }) {
  return (
    <>
      <div class="landing-ways">
        {canSignUp ? (
          <a class="button primary" href="/signup">
            Create an account
          </a>
        ) : (
          <a class="button primary" href="/sign-in">
            Sign in
          </a>
        )}
        <a class="button" href="/docs">
          Read the docs
        </a>
      </div>
      <p class="landing-note">
        {canSignUp ? (
          <>
            Have an account? <a href="/sign-in">Sign in</a>
          </>
        ) : (
          "Accounts on this service are by invitation."
        )}
      </p>
    </>
  );
}
