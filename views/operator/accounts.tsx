/** All accounts and their bases. */
import type { AccountSummary } from "../../core/control/accounts";
import { Ago, Badge, Card, Table } from "../components";
import { counted, inDigits } from "../format";

export function Accounts({ accounts, now }: { accounts: AccountSummary[]; now: Date }) {
  return (
    <Card id="accounts" title={counted(accounts.length, "account")}>
      <Table
        caption="Accounts"
        rows={accounts}
        idOf={({ id }) => id}
        columns={(column) => [
          column({ text: "Owner", isHead: true, class: "wrap" }, (account) => <bdi>{account.email}</bdi>),
          column({ text: "Created", class: "nowrap" }, (account) => <Ago at={account.createdAt} now={now} />),
          column({ text: "Bases", isNumber: true }, (account) => inDigits(account.bases)),
          column({ text: "Records", isNumber: true }, (account) => inDigits(account.records)),
          column({ text: "Databases", isNumber: true }, (account) => inDigits(account.databases)),
          column({ text: "SQL users", isNumber: true }, (account) => inDigits(account.sqlUsers)),
          column("Region", (account) => account.region ?? <span class="muted">Default</span>),
          column("Role", (account) => (account.isOperator ? <Badge>Operator</Badge> : "Customer")),
        ]}
      />
    </Card>
  );
}
