/** A plan as a tree: each step, above those that it reads from, with its rows and its share of the whole. */
import type { PlanNode } from "../../core/sql-editor";
import { counted, inDigits } from "../format";

/** Steps of at least this share of the whole are marked. */
const HEAVY_SHARE = 0.3;

export function QueryPlan({ plan, name }: { plan: PlanNode; name: string }) {
  return (
    <section class="plan" aria-label={name}>
      <p class="result-head">
        <strong>{name}</strong>
        <span class="muted">
          {plan.ms === undefined
            ? `estimated cost ${inDigits(plan.cost)}; the query did not run`
            : `ran ${inMs(plan.ms)}`}
        </span>
      </p>
      <ul class="plan-tree">
        <Step node={plan} />
      </ul>
    </section>
  );
}

function Step({ node }: { node: PlanNode }) {
  const { title, details, rows, estimatedRows, ms, share, children } = node;
  return (
    <li>
      <div class={share >= HEAVY_SHARE ? "plan-step heavy" : "plan-step"}>
        <p class="plan-title">
          <strong>{title}</strong>
          <span class="muted">
            {estimatedRows === undefined
              ? `about ${counted(rows, "row")}`
              : `${counted(rows, "row")}, estimated ${inDigits(estimatedRows)}`}
          </span>
        </p>
        <p class="plan-share">
          <svg class="plan-bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
            <rect width={Math.round(share * 1000) / 10} height="4" />
          </svg>
          <span class="small muted">
            {Math.round(share * 100)} % of the {ms === undefined ? "cost" : `time, ${inMs(ms)} so far`}
          </span>
        </p>
        {details.map(([name, text]) => (
          <p key={name} class="small plan-detail">
            <span class="muted">{name} </span>
            <code>{text}</code>
          </p>
        ))}
      </div>
      {children.length === 0 ? null : (
        <ul>
          {children.map((child, at) => (
            <Step key={at} node={child} />
          ))}
        </ul>
      )}
    </li>
  );
}

function inMs(ms: number): string {
  return ms < 10 ? `${ms.toFixed(2)} ms` : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
