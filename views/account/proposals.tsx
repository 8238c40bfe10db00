/** The proposals for the account's bases, first those that wait for a decision. */
import type { Base } from "../../core/control/bases";
import type { ChangeSet } from "../../core/control/change-sets";
import { changesPath, operationsOf, SetState } from "../base/change-sets";
import { Card, Empty, Table } from "../components";
import { Ago } from "../components/ago";
import { inDigits } from "../format";

export function Proposals({ proposals, bases, now }: { proposals: ChangeSet[]; bases: Base[]; now: Date }) {
  const nameOf = (id: string) => {
    const base = bases.find((one) => one.id === id);
    return base?.name || base?.sourceBaseId || id;
  };
  return (
    <Card id="proposals" title="Proposals">
      {proposals.length === 0 ? (
        <Empty title="No proposals yet">
          Changes that agents propose wait here. Nothing changes in Airtable until a member approves it.
        </Empty>
      ) : (
        <Table
          caption="Proposals, first those that wait"
          head={[
            { text: "Proposal" },
            { text: "State" },
            { text: "Base" },
            { text: "Operations", isNumber: true },
            { text: "By" },
            { text: "Proposed" },
          ]}
        >
          {proposals.map((set) => (
            <tr key={set.id}>
              <th scope="row" class="wrap">
                <a href={`${changesPath({ id: set.baseId })}/${set.id}`}>{set.note || set.id}</a>
              </th>
              <td>
                <SetState state={set.state} />
              </td>
              <td class="wrap">{nameOf(set.baseId)}</td>
              <td class="number">{inDigits(operationsOf(set))}</td>
              <td class="wrap">{set.createdBy ?? "–"}</td>
              <td class="nowrap">
                <Ago at={set.createdAt} now={now} />
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Card>
  );
}
