/** "Your data is ready": shown for a day after a base was connected, with queries of its own tables. */
import type { Base } from "../../core/control/bases";
import type { SampleQuery } from "../../core/exports";
import { DAY_MS } from "../../core/time-units";
import { Card, ProgramText, useMay } from "../components";
import { RunQuery } from "./run-query";

/** Is the moment for it? */
export function isJustReady({ sync, tables, createdAt }: Base, now: Date): boolean {
  return sync !== null && tables.length > 0 && now.getTime() - createdAt.getTime() < DAY_MS;
}

/** Loads the queries, which takes a look at the replica; without JavaScript, a link leads to them. */
export function ReadyCard({ base, now }: { base: Base; now: Date }) {
  const path = `/bases/${base.id}/ready`;
  const isOpenTo = useMay()("GET", path);
  if (!isOpenTo || !isJustReady(base, now)) return null;
  return (
    <div hx-get={path} hx-trigger="load" hx-target="this" hx-swap="innerHTML">
      <a href={path}>Your data is ready: start with queries of your own tables</a>
    </div>
  );
}

export function FirstQueries({ base, queries }: { base: Base; queries: SampleQuery[] }) {
  if (queries.length === 0) {
    return (
      <Card id="first-queries" title="Your data is on its way">
        <p>No table is complete yet. The first ones appear within seconds, small ones first.</p>
      </Card>
    );
  }
  return (
    <section class="first-queries" aria-labelledby="first-queries-heading">
      <h2 id="first-queries-heading">Your data is ready</h2>
      {queries.map(({ title, sql }, index) => (
        <RunQuery key={title} baseId={base.id} sql={sql} kind={index === 0 ? "primary" : "plain"} isSmall>
          <span class="visually-hidden">Run </span>
          {title}
        </RunQuery>
      ))}
      <details class="small">
        <summary>Copy the SQL</summary>
        <div>
          {queries.map(({ title, sql }, index) => (
            <ProgramText key={title} id={`first-query-${index + 1}`} name={title} code={sql} />
          ))}
        </div>
        <p>
          For any SQL client: <a href={`/bases/${base.id}/connect?with=psql`}>Connect with psql</a>
        </p>
      </details>
    </section>
  );
}
