/** The frame of the operator console's pages. */
import type { ComponentChildren } from "preact";
import { ErrorNote, Note, PageHead } from "../components";

type AdminPage = "fleet" | "requests" | "clusters" | "accounts";

const places: [AdminPage, string, string][] = [
  ["fleet", "/operator", "Fleet"],
  ["requests", "/operator/requests", "Requests"],
  ["clusters", "/operator/clusters", "Clusters"],
  ["accounts", "/operator/accounts", "Accounts"],
];

export function AdminFrame(props: {
  place: AdminPage;
  done?: string | undefined;
  error?: string | undefined;
  children: ComponentChildren;
}) {
  return (
    <>
      <PageHead title="Operator console" />
      <nav class="tabs" aria-label="Operator console">
        {places.map(([place, href, text]) => (
          <a key={place} href={href} aria-current={place === props.place ? "page" : undefined}>
            {text}
          </a>
        ))}
      </nav>
      {props.done ? <Note tone="good">{props.done}</Note> : null}
      {props.error ? <ErrorNote>{props.error}</ErrorNote> : null}
      {props.children}
    </>
  );
}
