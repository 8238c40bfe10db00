/** The frame of the operator console's pages. */
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
