/** The bases that fail now: whose they are, why, and since when. */
import type { UnhealthyBase } from "../../core/alerts";
import { Ago, Badge, Card, Table } from "../components";
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
      <Table
        caption="Bases that fail now, the oldest failure first"
        rows={bases}
        empty={<p class="muted">Every base works.</p>}
        columns={(column) => [
          column({ text: "Base", isHead: true, class: "wrap" }, (base) => (
            <BaseLink id={base.id}>{base.name}</BaseLink>
          )),
          column({ text: "Owner", class: "wrap" }, (base) => (
            <AccountLink id={base.accountId}>{base.owner}</AccountLink>
          )),
          column("State", (base) => (
            <Badge tone="red">{base.condition === "red" ? "Red" : "Needs attention"}</Badge>
          )),
          column({ text: "Cause", class: "wrap" }, (base) => base.reason),
          column({ text: "Since", class: "nowrap" }, (base) => <Ago at={base.since} now={now} />),
        ]}
      />
      {count > bases.length ? (
        <p class="muted">
          The {inDigits(bases.length)} oldest of {inDigits(count)} are listed.
        </p>
      ) : null}
    </Card>
  );
}
