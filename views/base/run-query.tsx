/** A button that opens the SQL page with a query, and runs it. */
import type { ComponentChildren } from "preact";
import { Button, Form } from "../components";

export function RunQuery(props: {
  baseId: string;
  sql: string;
  kind?: "primary" | "plain";
  isSmall?: boolean;
  children: ComponentChildren;
}) {
  const { baseId, sql, kind = "plain", isSmall = false, children } = props;
  return (
    <Form action={`/bases/${baseId}/sql`}>
      <input type="hidden" name="sql" value={sql} />
      <input type="hidden" name="as" value="rows" />
      <Button kind={kind} isSmall={isSmall}>
        {children}
      </Button>
    </Form>
  );
}
