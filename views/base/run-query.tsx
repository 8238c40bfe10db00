/** Buttons that open the SQL page with a query, and run it. */
import type { ComponentChildren } from "preact";
import type { Base } from "../../core/control/bases";
import { qualifiedName } from "../../core/exports";
import { Button, Form } from "../components";

export function RunQuery(props: {
  baseId: string;
  sql: string;
  kind?: "primary" | "plain" | "quiet";
  isSmall?: boolean;
  children: ComponentChildren;
}) {
  const { baseId, sql, kind = "plain", isSmall = false, children } = props;
  return (
    <Form action={`/bases/${baseId}/sql`} values={{ sql, as: "rows" }}>
      <Button kind={kind} isSmall={isSmall}>
        {children}
      </Button>
    </Form>
  );
}

/** Queries the newest rows of a table. */
export function QueryTable(props: {
  base: Pick<Base, "id" | "database">;
  table: string;
  kind?: "primary" | "quiet";
  isSmall?: boolean;
  children: ComponentChildren;
}) {
  const { base, table, ...rest } = props;
  const from = qualifiedName(base.database.schema, table);
  const sql = `select *\nfrom ${from}\norder by created_time desc\nlimit 20;`;
  return <RunQuery baseId={base.id} sql={sql} {...rest} />;
}
