/** What is red now, at the top of the alerts page. */
import type { FailingBase } from "../../core/alerts";
import { Note } from "../components";
import { counted } from "../format";

/** The most bases that are named. */
const MOST_NAMED = 5;

/** Empty if every base works. */
export function FailingNow({ bases }: { bases: FailingBase[] }) {
  if (bases.length === 0) return null;
  const rest = bases.length - MOST_NAMED;
  return (
    <Note tone="warn" title={titleOf(bases)}>
      <ul>
        {bases.slice(0, MOST_NAMED).map(({ id, name, headline }) => (
          <li key={id} class="wrap">
            <a href={`/bases/${id}`}>
              <bdi>{name}</bdi>
            </a>
            : {headline}
          </li>
        ))}
        {rest > 0 ? (
          <li>
            <a href="/bases">and {counted(rest, "more base")}</a>
          </li>
        ) : null}
      </ul>
    </Note>
  );
}

/** `2 bases are red now, and 1 base needs attention`. */
function titleOf(bases: FailingBase[]): string {
  const red = bases.filter(({ condition }) => condition === "red").length;
  const others = bases.length - red;
  return [
    red > 0 ? `${counted(red, "base")} ${red === 1 ? "is" : "are"} red now` : "",
    others > 0 ? `${counted(others, "base")} ${others === 1 ? "needs" : "need"} attention` : "",
  ]
    .filter(Boolean)
    .join(", and ");
}
