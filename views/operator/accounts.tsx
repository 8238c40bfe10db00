/** All accounts and their bases. */
import type { AccountSummary } from "../../core/control/accounts";
import { Badge, Card } from "../components";
import { Ago } from "../components/ago";
import { Table } from "../components/table";
import { counted, inDigits } from "../format";

export function Accounts({ accounts, now }: { accounts: AccountSummary[]; now: Date }) {
  return (
    <Card id="accounts" title={counted(accounts.length, "account")}>
      <Table
        caption="Accounts"
        head={[
          { text: "Owner" },
          { text: "Created" },
          { text: "Bases", isNumber: true },
          { text: "Records", isNumber: true },
          { text: "Databases", isNumber: true },
          { text: "SQL users", isNumber: true },
          { text: "Region" },
          { text: "Role" },
        ]}
      >
        {accounts.map((account) => (
          <tr key={account.id} id={account.id}>
            <th scope="row" class="wrap">
              <bdi>{account.email}</bdi>
            </th>
            <td class="nowrap">
              <Ago at={account.createdAt} now={now} />
            </td>
            <td class="number">{inDigits(account.bases)}</td>
            <td class="number">{inDigits(account.records)}</td>
            <td class="number">{inDigits(account.databases)}</td>
            <td class="number">{inDigits(account.sqlUsers)}</td>
            <td>{account.region ?? <span class="muted">Default</span>}</td>
            <td>{account.isOperator ? <Badge>Operator</Badge> : "Customer"}</td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}
