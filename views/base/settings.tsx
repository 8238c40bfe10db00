/** The settings of a base in groups, one line each, with the rest of an explanation on demand; a new API key; the deletion. */
import type { ComponentChildren } from "preact";
import {
  type Base,
  type Setting,
  savedText,
  settingByName,
  settingList,
  settingSections,
} from "../../core/control/bases";
import type { Workspace } from "../../core/control/budgets";
import type { TableSpec } from "../../core/replica";
import {
  Button,
  ButtonLink,
  Card,
  DialogLink,
  Field,
  Form,
  FormPanel,
  SettingsLayout,
  useMay,
} from "../components";
import { ToastNews } from "../frame/toasts";
import { WorkspaceChoice } from "./budget";
import { IndexForm } from "./index-form";
import { selectionPath } from "./selection";
import { type RefusedSetting, SettingForm } from "./setting-form";

/** The sections that are not settings of the base itself. */
const otherSections = [
  ["key", "API key"],
  ["copied-data", "Copied data"],
  ["call-budget", "Call budget"],
  ["end", "Delete"],
] as const;

export interface SettingsProps {
  base: Base;
  workspaces: Workspace[];
  /** The tables with their columns; empty while the database cannot be reached. */
  shape: TableSpec[];
  keyError?: string | undefined;
  workspaceError?: string | undefined;
  refused?: RefusedSetting | undefined;
}

export function SettingsPage(props: SettingsProps) {
  const { base, workspaces, shape, keyError, workspaceError, refused } = props;
  const path = `/bases/${base.id}`;
  const may = useMay();
  const isOpen = { key: may("POST", `${path}/key`), end: may("GET", `${path}/delete`) };
  const others = otherSections.filter(([id]) => isOpen[id as keyof typeof isOpen] !== false);
  return (
    <SettingsLayout sections={[...Object.entries(settingSections), ...others]}>
      {Object.entries(settingSections).map(([section, title]) => (
        <Card key={section} id={section} title={title}>
          {settingList
            .filter((setting) => setting.section === section)
            .map((setting) =>
              setting.type === "indexes" ? (
                <IndexForm key={setting.name} base={base} shape={shape} refused={refused} />
              ) : (
                <SettingForm key={setting.name} base={base} setting={setting} refused={refused} />
              ),
            )}
          {section === "attachments" ? <RevokeLinks base={base} /> : null}
          {section === "names" ? (
            <ButtonLink href={`${path}/names`}>Choose names of your own</ButtonLink>
          ) : null}
        </Card>
      ))}
      <Card id="base" title="This base">
        {isOpen.key ? (
          <Line id="key" title="API key" text="Encrypted at rest, and never shown.">
            <FormPanel
              id="new-key"
              action={`${path}/key`}
              button="Replace the key"
              isOpen={keyError !== undefined}
            >
              <Form action={`${path}/key`} class="stack rows">
                <Field
                  label="New API key"
                  name="api_key"
                  type="password"
                  required
                  error={keyError}
                  hint="We check the new key with Airtable before it replaces the current one, which is never shown."
                />
                <Button>Replace key</Button>
              </Form>
            </FormPanel>
          </Line>
        ) : null}
        <Line
          id="copied-data"
          title="Copied data"
          text={`The tables, fields and records that are copied. ${base.selection ? "Some are left out." : "Everything is copied."}`}
        >
          <ButtonLink href={selectionPath(base)}>Choose what is copied</ButtonLink>
        </Line>
        <WorkspaceChoice base={base} workspaces={workspaces} error={workspaceError} />
        {isOpen.end ? (
          <Line
            id="end"
            title="Delete"
            text="Deletes the synced data and the credentials. The base in Airtable is not changed."
          >
            <ButtonLink kind="danger" href={`${path}/delete`}>
              Delete this base…
            </ButtonLink>
          </Line>
        ) : null}
      </Card>
    </SettingsLayout>
  );
}

/** A line with a title and a text at the left, and what is done about it at the right. */
function Line(props: { id: string; title: string; text: string; children: ComponentChildren }) {
  return (
    <div id={props.id} class="rows line">
      <div>
        <strong>{props.title}</strong>
        <p class="hint">{props.text}</p>
      </div>
      {props.children}
    </div>
  );
}

/** The answer to a form that htmx has sent, with the other forms that the change affects. */
export function ChangedSetting({ base, setting }: { base: Base; setting: Setting }) {
  return (
    <>
      <SettingForm base={base} setting={setting} />
      <ToastNews text={savedText(setting)} />
      {setting.name === "rapid" ? <SettingForm base={base} setting={settingByName("live")!} isNews /> : null}
      {setting.name === "own_attachment_urls" ? <RevokeLinks base={base} isNews /> : null}
    </>
  );
}

/** For links that were given out, whether the setting is on or off now. */
function RevokeLinks({ base, isNews }: { base: Base; isNews?: boolean }) {
  return (
    <div id="attachment-links" hx-swap-oob={isNews ? "outerMorph" : undefined}>
      {base.attachmentKeyVersion > 0 ? (
        <div class="stack">
          <p class="hint">
            Anyone with a link can open that attachment. Revoking disables all existing links immediately; a
            sync then writes new ones to the rows.
          </p>
          <DialogLink kind="danger" href={`/bases/${base.id}/attachment-links/revoke`}>
            Revoke all attachment links…
          </DialogLink>
        </div>
      ) : null}
    </div>
  );
}
