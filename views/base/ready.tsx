/** "Your data is ready": shown for a day after a base was connected, with queries of its own tables. */
import type { Base } from "../../core/control/bases";
import type { SampleQuery } from "../../core/exports";
import { ButtonLink, Card, useMay } from "../components";
import { ProgramText } from "../components/program";
import { counted } from "../format";
import { RunQuery } from "./run-query";

const SHOWN_MS = 24 * 3600_000;

/** Is the moment for it? */
export function isJustReady({ sync, tables, createdAt }: Base, now: Date): boolean {
  return sync !== null && tables.length > 0 && now.getTime() - createdAt.getTime() < SHOWN_MS;
}

/** Loads the queries, which takes a look at the replica; without JavaScript, a link leads to them. */
export function ReadyCard({ base, now }: { base: Base; now: Date }) {
  const path = `/bases/${base.id}/ready`;
  const isOpenTo = useMay()("GET", path);
  if (!isOpenTo || !isJustReady(base, now)) return null;
  return (
    <div hx-get={path} hx-trigger="load" hx-target="this" hx-swap="innerHTML">
      <Card id="first-queries" title="Your data is ready">
        <p>
          <a href={path}>Start with queries of your own tables</a>
        </p>
      </Card>
    </div>
  );
}

export function FirstQueries({ base, queries }: { base: Base; queries: SampleQuery[] }) {
  const records = base.tables.reduce((sum, table) => sum + table.records, 0);
  if (queries.length === 0) {
    return (
      <Card id="first-queries" title="Your data is on its way">
        <p>No table is complete yet. The first ones appear within seconds, small ones first.</p>
      </Card>
    );
  }
  return (
    <Card
      id="first-queries"
      title="Your data is ready"
      actions={
        <ButtonLink href={`/bases/${base.id}/connect?with=psql`} isSmall>
          Connect with psql
        </ButtonLink>
      }
    >
      <p class="muted">
        {base.sync ? `${counted(records, "record")} in ${counted(base.tables.length, "table")}. ` : null}
        Run one of these here, or in any SQL client:
      </p>
      <div class="first-queries">
        {queries.map(({ title, sql }, index) => (
          <ProgramText key={title} id={`first-query-${index + 1}`} name={title} code={sql}>
            <RunQuery baseId={base.id} sql={sql} kind={index === 0 ? "primary" : "plain"} isSmall>
              Run<span class="visually-hidden"> {title}</span>
            </RunQuery>
          </ProgramText>
        ))}
      </div>
    </Card>
  );
}
