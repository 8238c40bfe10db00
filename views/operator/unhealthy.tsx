/** The bases that fail now: whose they are, why, and since when. */
import type { UnhealthyBase } from "../../core/alerts";
import { Badge, Card } from "../components";
import { Ago } from "../components/ago";
import { Table } from "../components/table";
import { inDigits } from "../format";
import { AccountLink, BaseLink } from "./frame";

interface UnhealthyProps {
  bases: UnhealthyBase[];
  /** Of all, which may be more than are listed. */
  count: number;
  now: Date;
}

export function Unhealthy({ bases, count, now }: UnhealthyProps) {
  return (
    <Card id="unhealthy" title="Unhealthy bases">
      {bases.length === 0 ? (
        <p class="muted">Every base works.</p>
      ) : (
        <Table
          caption="Bases that fail now, the oldest failure first"
          head={[
            { text: "Base" },
            { text: "Owner" },
            { text: "State" },
            { text: "Cause" },
            { text: "Since" },
          ]}
        >
          {bases.map((base) => (
            <tr key={base.id}>
              <th scope="row" class="wrap">
                <BaseLink id={base.id}>{base.name}</BaseLink>
              </th>
              <td class="wrap">
                <AccountLink id={base.accountId}>{base.owner}</AccountLink>
              </td>
              <td>
                <Badge tone="red">{base.condition === "red" ? "Red" : "Needs attention"}</Badge>
              </td>
              <td class="wrap">{base.reason}</td>
              <td class="nowrap">
                <Ago at={base.since} now={now} />
              </td>
            </tr>
          ))}
        </Table>
      )}
      {count > bases.length ? (
        <p class="muted">
          The {inDigits(bases.length)} oldest of {inDigits(count)} are listed.
        </p>
      ) : null}
    </Card>
  );
}
