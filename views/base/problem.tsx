/**
 * A base that is not current: one action, how old its data is, and the next try. The words of the source or of a server
 * are under Details.
 */
import type { Base } from "../../core/control/bases";
import type { BaseStatus, Remedy } from "../../core/control/status";
import { Ago, Button, ButtonLink, Form, Time } from "../components";
import { formatDuration } from "../format";

export function BaseProblem({ base, status, now }: { base: Base; status: BaseStatus; now: Date }) {
  const { asOf, details } = status;
  return (
    <div class="base-problem">
      {asOf ? <DataAsOf asOf={asOf} now={now} /> : null}
      <NextTry status={status} now={now} />
      {details ? (
        <details class="small">
          <summary>Details</summary>
          <p class="wrap">
            {base.error ? <code>{base.error.code}</code> : null} {details}
          </p>
          {base.error ? (
            <p class="muted">
              Since <Time at={base.error.since} />, <Ago at={base.error.since} now={now} />.
            </p>
          ) : null}
        </details>
      ) : null}
    </div>
  );
}

/** `Data as of 23:56 UTC, 12 min old`. */
export function DataAsOf({ asOf, now }: { asOf: Date; now: Date }) {
  const ageMs = Math.max(0, now.getTime() - asOf.getTime());
  const isToday = asOf.toISOString().slice(0, 10) === now.toISOString().slice(0, 10);
  return (
    <p class="as-of">
      Data as of <Time at={asOf} form={isToday ? "clock" : "minute"} />,{" "}
      <strong>{ageMs < 60_000 ? "less than a minute" : coarse(ageMs)} old</strong>
    </p>
  );
}

/** Whole minutes: seconds add nothing to an age. */
function coarse(ageMs: number): string {
  return formatDuration(ageMs).replace(/ \d+ s$/, "");
}

function NextTry({ status: { nextAt, next }, now }: { status: BaseStatus; now: Date }) {
  if (!nextAt) return next ? <p class="muted">{next}</p> : null;
  const waitMs = nextAt.getTime() - now.getTime();
  if (waitMs <= 0) return <p class="muted">Next try: now.</p>;
  return (
    <p class="muted">
      Next try: <Time at={nextAt} form={waitMs < 20 * 3600_000 ? "clock" : "minute"} />, in{" "}
      {waitMs < 60_000 ? formatDuration(waitMs) : coarse(waitMs)}.
    </p>
  );
}

/** What is spread out to keep within a budget is well: the action is offered, and does not stand out. */
export function RemedyAction(props: { base: Base; status: BaseStatus; remedy: Remedy }) {
  const { base, status, remedy } = props;
  const path = `/bases/${base.id}`;
  const kind = status.color === "neutral" ? "plain" : "primary";
  const forms: Partial<Record<Remedy["to"], string>> = {
    resume: "pause",
    resync: "sync",
    feed: "live/check",
  };
  if (forms[remedy.to]) {
    return (
      <Form action={`${path}/${forms[remedy.to]}`}>
        {remedy.to === "resume" ? <input type="hidden" name="paused" value="off" /> : null}
        <Button kind={kind}>{remedy.text}</Button>
      </Form>
    );
  }
  const places: Partial<Record<Remedy["to"], string>> = {
    key: `${path}/settings#key`,
    budget: base.workspaceId ? `/account/workspaces/${base.workspaceId}` : `${path}/settings#call-budget`,
    runs: `${path}/runs`,
    issues: `${path}/issues`,
  };
  return (
    <ButtonLink kind={kind} href={places[remedy.to]!}>
      {remedy.text}
    </ButtonLink>
  );
}
