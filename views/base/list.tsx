/** All bases of the account, one per line. */
import { type BaseSummary, isLive, statusOf } from "../../core/control/status";
import { ButtonLink, Empty, PageHead } from "../components";
import { Ago } from "../components/ago";
import { Field } from "../components/field";
import { Table } from "../components/table";
import { counted, formatElapsed, inDigits } from "../format";
import { live } from "../live";
import { StateBadge } from "./state";

/** With so few bases, the page has no search. */
const FEW = 8;

interface BaseListProps {
  bases: BaseSummary[];
  /** The search text; `bases` are the matches. */
  query: string;
  /** The total number of bases. */
  total: number;
  now: Date;
}

export function BaseList(props: BaseListProps) {
  const { total, query } = props;
  const connect = (
    <ButtonLink kind="primary" href="/new">
      Connect a base
    </ButtonLink>
  );
  return (
    <>
      <PageHead title="Bases" actions={total > 0 ? connect : undefined} />
      {total === 0 ? (
        <Empty title="No bases yet" action={connect}>
          Connect a base, and you can query its tables in SQL seconds later.
        </Empty>
      ) : (
        <>
          {total > FEW || query !== "" ? <Search query={query} /> : null}
          <BaseRows {...props} />
        </>
      )}
    </>
  );
}

function Search({ query }: { query: string }) {
  return (
    <search>
      <form method="get" action="/bases" class="search">
        <Field
          label="Find a base"
          name="q"
          type="search"
          value={query}
          autocomplete="off"
          hx-get="/bases"
          hx-trigger="input changed delay:200ms, search"
          hx-target="#bases"
          hx-swap="outerMorph"
          hx-include="this"
        />
        <button type="submit" class="button needs-no-script">
          Find
        </button>
      </form>
    </search>
  );
}

/** The part that refreshes itself. */
export function BaseRows({ bases, query, total, now }: BaseListProps) {
  const search = query === "" ? "" : `?q=${encodeURIComponent(query)}`;
  return (
    <div id="bases" class="card" {...live(`/bases${search}`, 2)}>
      <p class="muted small" role="status">
        {query === "" ? counted(total, "base") : `${inDigits(bases.length)} of ${counted(total, "base")}`}
      </p>
      {bases.length === 0 ? (
        <p class="wrap">
          No base matches “{query}” by name, id or database. <a href="/bases">Show all</a>
        </p>
      ) : (
        <Table
          caption="Bases"
          head={[
            { text: "Name" },
            { text: "State" },
            { text: "Sync time", isNumber: true },
            { text: "Last read" },
            { text: "Tables", isNumber: true },
            { text: "Records", isNumber: true },
            { text: "Database" },
          ]}
        >
          {bases.map((base) => (
            <BaseRow key={base.id} base={base} now={now} />
          ))}
        </Table>
      )}
    </div>
  );
}

function BaseRow({ base, now }: { base: BaseSummary; now: Date }) {
  const status = statusOf(base, now);
  // In live mode, nothing is synced while nothing changes.
  const readAt = isLive(base) ? base.live.readAt : (base.sync?.completedAt ?? null);
  return (
    <tr id={base.id}>
      <th scope="row" class="wrap">
        <a href={`/bases/${base.id}`}>
          <bdi>{base.name || base.sourceBaseId}</bdi>
        </a>
      </th>
      <td>
        <StateBadge status={status} now={now} />
        {base.issues > 0 ? (
          <>
            {" "}
            <a class="badge yellow" href={`/bases/${base.id}/issues`}>
              {counted(base.issues, "issue")}
            </a>
          </>
        ) : null}
      </td>
      <td class="number nowrap minor">{base.sync ? formatElapsed(base.sync.durationMs) : "–"}</td>
      <td class="nowrap">{readAt ? <Ago at={readAt} now={now} /> : "–"}</td>
      <td class="number minor">{inDigits(base.tables)}</td>
      <td class="number">{inDigits(base.records)}</td>
      <td class="minor">
        <code>
          {base.database}
          {base.schema === "public" ? "" : `.${base.schema}`}
        </code>
      </td>
    </tr>
  );
}
