/** The proposals for the account's bases, first those that wait for a decision. */
import type { Base } from "../../core/control/bases";
import type { ChangeSet } from "../../core/control/change-sets";
import { changesPath, SetState } from "../base/change-sets";
import { operationsOf } from "../base/proposal";
import { Ago, Card, Empty, Table } from "../components";
import { inDigits } from "../format";

export function Proposals({ proposals, bases, now }: { proposals: ChangeSet[]; bases: Base[]; now: Date }) {
  const nameOf = (id: string) => {
    const base = bases.find((one) => one.id === id);
    return base?.name || base?.sourceBaseId || id;
  };
  return (
    <Card id="proposals" title="Proposals">
      <Table
        caption="Proposals, first those that wait"
        rows={proposals}
        empty={
          <Empty title="No proposals yet">
            Changes that agents propose wait here. Nothing changes in Airtable until a member approves it.
          </Empty>
        }
        columns={(column) => [
          column({ text: "Proposal", isHead: true, class: "wrap" }, (set) => (
            <a href={`${changesPath({ id: set.baseId })}/${set.id}`}>{set.note || set.id}</a>
          )),
          column("State", (set) => <SetState state={set.state} />),
          column({ text: "Base", class: "wrap" }, (set) => nameOf(set.baseId)),
          column({ text: "Operations", isNumber: true }, (set) => inDigits(operationsOf(set))),
          column({ text: "By", class: "wrap" }, (set) => set.createdBy ?? "–"),
          column({ text: "Proposed", class: "nowrap" }, (set) => <Ago at={set.createdAt} now={now} />),
        ]}
      />
    </Card>
  );
}
