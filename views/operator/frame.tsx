/** The frame of the operator console's pages, and the links between them. */
import type { ComponentChildren } from "preact";
import { ErrorNote, PageHead, Tabs } from "../components";

const places = {
  fleet: { href: "/operator", text: "Fleet" },
  requests: { href: "/operator/requests", text: "Requests" },
  clusters: { href: "/operator/clusters", text: "Clusters" },
  accounts: { href: "/operator/accounts", text: "Accounts" },
};
const tabs = Object.values(places);

export function AdminFrame(props: {
  place: keyof typeof places;
  error?: string | undefined;
  children: ComponentChildren;
}) {
  const current = places[props.place].href;
  return (
    <>
      <PageHead title="Operator console" />
      <Tabs label="Operator console" current={current} tabs={tabs} />
      {props.error ? <ErrorNote>{props.error}</ErrorNote> : null}
      {props.children}
    </>
  );
}

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
