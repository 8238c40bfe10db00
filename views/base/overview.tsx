/**
 * The overview of a base: its current state, its tables, and two small charts that lead to more.
 *
 * One small part polls every two seconds and is morphed into the page, so that only what has changed is replaced. Its
 * request says what the page already shows; larger parts are included only if they have changed. Those that need queries
 * of their own are compared only every few polls.
 */
import type { Base } from "../../core/control/bases";
import type { Budget, QuotaUse } from "../../core/control/budgets";
import type { LagBucket, LagHistory } from "../../core/control/history";
import { ago } from "../format";
import { live } from "../live";
import { LagCard } from "./lag-chart";
import { Now } from "./now";
import { isJustReady, ReadyCard } from "./ready";
import { Tables } from "./tables";
import { Usage } from "./usage";

/** What every poll reads. */
interface CurrentFacts {
  base: Base;
  /** The page about the rights of an API key. */
  keyHelpUrl: string | undefined;
  now: Date;
}

/** What needs queries of its own. */
export interface SlowFacts {
  /** Of the last day. */
  history: LagHistory;
  use: QuotaUse;
  /** Of the base's workspace; null: no cap. */
  budget: Budget | null;
  /** When the records of each table last changed, by the source's id. */
  changes: ReadonlyMap<string, Date>;
}

type OverviewProps = CurrentFacts & SlowFacts;

/** What these parts count begins when the first sync has finished. */
const afterFirstSync: readonly string[] = ["history", "tables"];

/** While a first sync runs, its progress is all there is. */
function isHidden(name: Section, { sync, progress }: Base): boolean {
  return sync === null && (progress !== null || afterFirstSync.includes(name));
}

const sections = {
  ready: ({ base, now }: OverviewProps) => <ReadyCard base={base} now={now} />,
  tables: ({ base, changes, now }: OverviewProps) => <Tables base={base} changes={changes} now={now} />,
  history: ({ base, history }: OverviewProps) => <LagCard baseId={base.id} history={history} />,
  usage: ({ use, budget }: OverviewProps) => <Usage use={use} budget={budget} />,
};
type Section = keyof typeof sections;
const names = Object.keys(sections) as Section[];
const slowSections: readonly Section[] = ["tables", "history", "usage"];
/** The age, ms, from which slow facts are read again. */
const SLOW_FACTS_MS = 7000;

export function Overview(props: OverviewProps) {
  return (
    <div class="overview">
      <Live {...props} versions={versionsOf(props)} slowAt={props.now} />
      {names.slice(0, 2).map((name) => (
        <Part key={name} name={name} {...props} />
      ))}
      <div class="pair small-charts">
        {names.slice(2).map((name) => (
          <Part key={name} name={name} {...props} />
        ))}
      </div>
    </div>
  );
}

/** Whether a poll must read the slow facts. @param slowAt when the page's were read, ms since 1970, as its request says */
export function needsSlowFacts(slowAt: number, now: Date): boolean {
  const ageMs = now.getTime() - slowAt;
  return !(ageMs >= 0 && ageMs < SLOW_FACTS_MS);
}

/**
 * The answer to the page's poll.
 *
 * @param props.seen what the page shows, as its request says
 * @param props.slow null: they were read a moment ago, at `slowAt`
 */
export function OverviewNews(props: CurrentFacts & { seen: string; slow: SlowFacts | null; slowAt: number }) {
  const { slow, slowAt, seen, ...current } = props;
  const old = seen.split(".");
  // Without slow facts only the other sections are looked at.
  const facts = { ...current, ...slow } as OverviewProps;
  const known = (name: Section) =>
    slow !== null || !slowSections.includes(name) || isHidden(name, current.base);
  const versions = names.map((name, index) => (known(name) ? versionOf(name, facts) : (old[index] ?? "")));
  return (
    <>
      <Live {...current} versions={versions} slowAt={slow ? current.now : new Date(slowAt)} />
      {names.map((name, index) =>
        versions[index] === old[index] || !known(name) ? null : (
          <Part key={name} name={name} isNews {...facts} />
        ),
      )}
    </>
  );
}

function Part({ name, isNews, ...props }: OverviewProps & { name: Section; isNews?: boolean }) {
  return (
    <div id={name} hx-target:inherited="#dialog" hx-swap-oob={isNews ? "innerMorph" : undefined}>
      {isHidden(name, props.base) ? null : sections[name](props)}
    </div>
  );
}

function Live(props: CurrentFacts & { versions: string[]; slowAt: Date }) {
  const { base, now, keyHelpUrl, versions, slowAt } = props;
  const path = `/bases/${base.id}/live?seen=${versions.join(".")}&at=${slowAt.getTime()}`;
  return (
    <div id="live" {...live(path, base.progress ? 1 : 2)}>
      <Now base={base} now={now} keyHelpUrl={keyHelpUrl} />
    </div>
  );
}

/** An age that grows every second is drawn again when it is a quarter greater. */
function coarse({ at, maxMs, changed }: LagBucket) {
  return [at, maxMs === null ? null : Math.round(Math.log(maxMs + 1) * 4), changed];
}

function versionsOf(facts: OverviewProps): string[] {
  return names.map((name) => versionOf(name, facts));
}

/** A short version of the section's content. */
function versionOf(name: Section, facts: OverviewProps): string {
  const content = isHidden(name, facts.base) ? null : contents[name](facts);
  return Bun.hash(JSON.stringify(content) ?? "").toString(36);
}

const contents: Record<Section, (facts: OverviewProps) => unknown> = {
  ready: ({ base, now }) => isJustReady(base, now),
  tables: ({ base, changes, now }) => [
    base.tables,
    base.openIssueCount,
    base.issues,
    [...changes].map(([id, at]) => [id, ago(at, now)]),
  ],
  history: ({ history }) => [history.lag.map(coarse), history.periods, history.markers],
  usage: ({ use, budget }) => [
    use,
    budget && [budget.name, budget.callsPerMonth, budget.reserve, budget.used, budget.state],
  ],
};
