/** The frame of the pages about the user and the account: one head and its tabs. */
import type { ComponentChildren } from "preact";
import type { CurrentUser } from "../../core/control/accounts";
import { Note, PageHead } from "../components";

const TABS = [
  { path: "/account", text: "Sign-in" },
  { path: "/account/members", text: "Members" },
  { path: "/account/workspaces", text: "Workspaces" },
  { path: "/account/alerts", text: "Alerts" },
  { path: "/account/tokens", text: "API tokens" },
  { path: "/account/activity", text: "Activity" },
] as const;

type AccountTab = (typeof TABS)[number]["path"];

export function AccountFrame(props: {
  currentUser: CurrentUser;
  tab: AccountTab;
  /** The notice of the last action. */
  done?: string | undefined;
  children: ComponentChildren;
}) {
  const { currentUser, tab, done } = props;
  return (
    <>
      <PageHead title="Account" lead={<span class="wrap">{currentUser.account.email}</span>} />
      <nav class="tabs" aria-label="Account">
        {TABS.map(({ path, text }) => (
          <a key={path} href={path} aria-current={path === tab ? "page" : undefined}>
            {text}
          </a>
        ))}
      </nav>
      {done ? <Note tone="good">{done}</Note> : null}
      {props.children}
    </>
  );
}
