/** Links from an id or a name to its page in the operator console. */
import type { ComponentChildren } from "preact";

/** @param props.children default: the id */
export function BaseLink({ id, children }: { id: string; children?: ComponentChildren }) {
  return (
    <a href={`/operator/bases/${encodeURIComponent(id)}`}>
      {children ? <bdi>{children}</bdi> : <code>{id}</code>}
    </a>
  );
}

/** Leads to the account's row in the list of accounts. */
export function AccountLink({ id, children }: { id: string; children: ComponentChildren }) {
  return (
    <a href={`/operator/accounts#${id}`}>
      <bdi>{children}</bdi>
    </a>
  );
}
