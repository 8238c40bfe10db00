/** The picture of the landing page: a grid of Airtable, and a query that shows its change. */

const ROWS: [name: string, status: string, tone: string, owner: string, due: string][] = [
  ["Launch page", "Done", "green", "Ada", "Nov 20"],
  ["Price list", "In progress", "yellow", "Grace", "Nov 24"],
  ["Onboarding mail", "Done", "green", "Lin", "Nov 25"],
  ["Partner deck", "To do", "blue", "Ada", "Dec 1"],
];

/** As psql prints it. */
const RESULT: [string, string, string][] = [
  ["Launch page", "Ada", "2026-11-20"],
  ["Onboarding mail", "Lin", "2026-11-25"],
];

const DESCRIPTION =
  "A grid in Airtable, in which the status of a task has just become Done, and a SQL query in psql that already returns that task.";

export function LandingPicture() {
  return (
    <div class="picture" role="img" aria-label={DESCRIPTION}>
      <div class="picture-window picture-grid">
        <div class="picture-title">
          <Dots />
          <span>Airtable</span>
          <b>Tasks</b>
        </div>
        <table>
          <thead>
            <tr>
              <th>Name</th>
              <th>Status</th>
              <th>Owner</th>
              <th class="picture-due">Due</th>
            </tr>
          </thead>
          <tbody>
            {ROWS.map(([name, status, tone, owner, due], index) => (
              <tr key={name} class={index === 2 ? "picture-changed" : undefined}>
                <td>{name}</td>
                <td>
                  <span class={`picture-choice ${tone}`}>{status}</span>
                </td>
                <td>{owner}</td>
                <td class="picture-due">{due}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>

      <div class="picture-flow">
        <svg viewBox="0 0 96 40" width="96" height="40" aria-hidden="true" focusable="false">
          <path class="picture-wave" d="M2 20c8 0 8-7 15-7s8 7 15 7 8-7 15-7 8 7 15 7 8-7 15-7 7 7 12 7" />
          <path class="picture-head" d="m84 13 8 7-8 7" />
        </svg>
        <span>0.8 s</span>
      </div>

      <div class="picture-window picture-sql">
        <div class="picture-title">
          <Dots />
          <span>psql</span>
          <b>project_tracker</b>
        </div>
        <pre>
          <span class="picture-prompt">=&gt; </span>
          <span class="tok-keyword">select</span> name, owner, due{"\n"}
          {"   "}
          <span class="tok-keyword">from</span> tasks{"\n"}
          {"   "}
          <span class="tok-keyword">where</span> status = <span class="tok-string">'Done'</span>;{"\n\n"}
          <span class="picture-dim">
            {"      name       | owner |    due\n"}
            {"-----------------+-------+------------\n"}
          </span>
          {RESULT.map(([name, owner, due], index) => (
            <span key={name} class={index === 1 ? "picture-row picture-new" : "picture-row"}>
              {` ${name.padEnd(15)} `}
              <span class="picture-dim">|</span>
              {` ${owner.padEnd(5)} `}
              <span class="picture-dim">|</span>
              {` ${due}`}
            </span>
          ))}
          <span class="picture-dim">(2 rows)</span>
        </pre>
      </div>
    </div>
  );
}

function Dots() {
  return (
    <span class="picture-dots">
      <i />
      <i />
      <i />
    </span>
  );
}
