/** The frame of the pages of one base: its name, its state, its actions, and the links to its other pages. */
import type { ComponentChildren } from "preact";
import type { Base } from "../../core/control/bases";
import { Button, DialogLink, Form, PageHead, Tabs } from "../components";
import { inDigits } from "../format";
import { type BasePlace, basePlaces, baseTabs } from "./pages";
import { Unanswered } from "./selection";

export function BaseFrame(props: { base: Base; place: BasePlace; children: ComponentChildren }) {
  const { base, place, children } = props;
  const path = `/bases/${base.id}`;
  return (
    <>
      <PageHead
        title={<bdi>{base.name || base.sourceBaseId}</bdi>}
        lead={
          <>
            Base <code>{base.sourceBaseId}</code>, synced to the database <code>{base.database.name}</code>,
            schema <code>{base.database.schema}</code>
          </>
        }
        actions={<BaseActions base={base} path={path} />}
      />
      <Tabs
        label="Base"
        current={`${path}${basePlaces.find((page) => page.place === place)!.suffix}`}
        tabs={baseTabs.map((page) => ({
          href: `${path}${page.suffix}`,
          text: page.text,
          mark:
            page.place === "issues" && base.openIssueCount > 0 ? inDigits(base.openIssueCount) : undefined,
        }))}
      />
      {place === "overview" ? <Unanswered base={base} /> : null}
      {children}
    </>
  );
}

function BaseActions({ base, path }: { base: Base; path: string }) {
  const isPaused = base.state === "paused";
  return (
    <>
      <Form action={`${path}/pause`} values={{ paused: isPaused ? "off" : "on" }}>
        <Button>{isPaused ? "Resume" : "Pause"}</Button>
      </Form>
      {isPaused ? null : (
        <DialogLink href={`${path}/sync`} title="Re-reads every table from Airtable">
          Resync
        </DialogLink>
      )}
      <DialogLink href={`${path}/connect`} kind="primary">
        Connect
      </DialogLink>
    </>
  );
}
