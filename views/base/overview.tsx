/**
 * The overview of a base: its current state, its history, and its contents.
 *
 * One small part polls every two seconds and is morphed into the page, so that only what has changed is replaced. Its
 * request says what the page already shows; larger parts are included only if they have changed.
 */
import type { Base, SchemaChange } from "../../core/control/bases";
import type { Budget, QuotaUse } from "../../core/control/budgets";
import type { LagBucket, LagHistory } from "../../core/control/history";
import { live } from "../live";
import { BudgetCard } from "./budget";
import { SchemaChanges } from "./changes";
import { Issues } from "./issues";
import { LagCard } from "./lag-chart";
import { Now } from "./now";
import { isJustReady, ReadyCard } from "./ready";
import { Tables } from "./tables";
import { Usage } from "./usage";

interface OverviewProps {
  base: Base;
  /** Of the last day. */
  history: LagHistory;
  use: QuotaUse;
  /** Of the base's workspace; null: no cap. */
  budget: Budget | null;
  /** Newest first. */
  changes: SchemaChange[];
  /** The page about the rights of an API key. */
  keyHelpUrl: string | undefined;
  now: Date;
}

const sections = {
  history: ({ base, history }: OverviewProps) => <LagCard baseId={base.id} history={history} />,
  usage: ({ use }: OverviewProps) => <Usage use={use} />,
  budget: ({ budget }: OverviewProps) => <BudgetCard budget={budget} />,
  tables: ({ base }: OverviewProps) => <Tables base={base} />,
  issues: ({ base }: OverviewProps) => <Issues base={base} />,
  changes: ({ changes, now }: OverviewProps) => <SchemaChanges changes={changes} now={now} />,
  ready: ({ base, now }: OverviewProps) => <ReadyCard base={base} now={now} />,
};
type Section = keyof typeof sections;
const names = Object.keys(sections) as Section[];

export function Overview(props: OverviewProps) {
  return (
    <>
      <Live {...props} />
      <Part name="ready" {...props} />
      <div class="pair">
        {names.slice(0, 2).map((name) => (
          <Part key={name} name={name} {...props} />
        ))}
      </div>
      {names.slice(2, -1).map((name) => (
        <Part key={name} name={name} {...props} />
      ))}
    </>
  );
}

/** The answer to the page's poll. @param seen what the page shows, as its request says */
export function OverviewNews(props: OverviewProps & { seen: string }) {
  const old = props.seen.split(".");
  const now = versions(props);
  const changed = names.filter((_, index) => now[index] !== old[index]);
  return (
    <>
      <Live {...props} />
      {changed.map((name) => (
        <Part key={name} name={name} isNews {...props} />
      ))}
    </>
  );
}

function Part({ name, isNews, ...props }: OverviewProps & { name: Section; isNews?: boolean }) {
  return (
    <div id={name} hx-target:inherited="#dialog" hx-swap-oob={isNews ? "innerMorph" : undefined}>
      {sections[name](props)}
    </div>
  );
}

function Live(props: OverviewProps) {
  const { base, now, keyHelpUrl } = props;
  return (
    <div id="live" {...live(`/bases/${base.id}/live?seen=${versions(props).join(".")}`, 2)}>
      <Now base={base} now={now} keyHelpUrl={keyHelpUrl} />
    </div>
  );
}

/** An age that grows every second is drawn again when it is a quarter greater. */
function coarse({ at, maxMs, changed }: LagBucket) {
  return [at, maxMs === null ? null : Math.round(Math.log(maxMs + 1) * 4), changed];
}

/** A short version of each section's content. */
function versions({ base, history, use, budget, changes, now }: OverviewProps): string[] {
  const { issueCount, issues, tables } = base;
  const shown: Record<Section, unknown> = {
    history: [history.lag.map(coarse), history.periods, history.markers],
    usage: use,
    budget: budget && [budget.name, budget.callsPerMonth, budget.reserve, budget.used, budget.state],
    tables,
    issues: [issueCount, issues],
    changes: changes[0]?.id,
    ready: isJustReady(base, now),
  };
  return names.map((name) => Bun.hash(JSON.stringify(shown[name]) ?? "").toString(36));
}
