/** The frame of the pages about the user and the account: one head, and tabs where a section has several pages. */
import type { ComponentChildren } from "preact";
import { PageHead, Tabs } from "../components";

const TEAM = [
  { href: "/account/members", text: "Members" },
  { href: "/account/activity", text: "Activity" },
];

const AGENTS = [
  { href: "/account/agents", text: "Agents" },
  { href: "/account/proposals", text: "Proposals" },
  { href: "/account/connections", text: "Connected programs" },
];

/** The head of each page, by its path. */
const pages = {
  "/account": { title: "Settings", lead: "Your password and the browsers you are signed in with." },
  "/account/members": { title: "Team", lead: "Who can open this account." },
  "/account/workspaces": {
    title: "Usage",
    lead: "Calls to Airtable, and how long those of your workspaces last.",
  },
  "/account/alerts": { title: "Alerts", lead: "Messages when a base needs you." },
  "/account/tokens": { title: "API", lead: "Tokens for the management API." },
  "/account/agents": { title: "Agents", lead: "AI clients that read your bases and propose changes." },
  "/account/proposals": { title: "Agents", lead: "Changes that wait for a decision." },
  "/account/connections": { title: "Agents", lead: "Programs that work with your bases as agents." },
  "/account/status": { title: "Status page", lead: "A public page for those who rely on your data." },
  "/account/activity": { title: "Team", lead: "Changes to this account, and who made them." },
} as const;

export function AccountFrame(props: { tab: keyof typeof pages; children: ComponentChildren }) {
  const { tab } = props;
  const { title, lead } = pages[tab];
  return (
    <>
      <PageHead title={title} lead={lead} />
      {title === "Agents" ? <Tabs label="Agents" current={tab} tabs={AGENTS} /> : null}
      {title === "Team" ? <Tabs label="Team" current={tab} tabs={TEAM} /> : null}
      {props.children}
    </>
  );
}
