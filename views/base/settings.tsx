/** The settings of a base with their explanations; a new API key; and the deletion of the base. */
import {
  type Base,
  type Setting,
  savedText,
  settingByName,
  settingList,
  settingSections,
} from "../../core/control/bases";
import type { Workspace } from "../../core/control/budgets";
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
import { selectionPath } from "./selection";
import { type RefusedSetting, SettingForm } from "./setting-form";

/** The sections that are not settings of the base itself. */
const otherSections = [
  ["copied-data", "Copied data"],
  ["call-budget", "Call budget"],
  ["key", "API key"],
  ["end", "Delete"],
] as const;

export function SettingsPage(props: {
  base: Base;
  workspaces: Workspace[];
  keyError?: string | undefined;
  workspaceError?: string | undefined;
  refused?: RefusedSetting | undefined;
}) {
  const { base, workspaces, keyError, workspaceError, refused } = props;
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
            .map((setting) => (
              <SettingForm key={setting.name} base={base} setting={setting} refused={refused} />
            ))}
          {section === "attachments" ? <RevokeLinks base={base} /> : null}
          {section === "names" ? (
            <ButtonLink href={`${path}/names`}>Choose names of your own</ButtonLink>
          ) : null}
        </Card>
      ))}
      <Card id="copied-data" title="Copied data">
        <p class="muted">
          Which tables, fields and records are copied from Airtable, and which fields only as hashes.{" "}
          {base.selection ? "Some are left out." : "Everything is copied."}
        </p>
        <ButtonLink href={selectionPath(base)}>Choose what is copied</ButtonLink>
      </Card>
      <WorkspaceChoice base={base} workspaces={workspaces} error={workspaceError} />
      {isOpen.key ? (
        <Card id="key" title="API key">
          <p class="muted">Encrypted at rest, and never shown.</p>
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
                autocomplete="off"
                error={keyError}
                hint="We check the new key with Airtable before it replaces the current one, which is never shown."
              />
              <Button>Replace key</Button>
            </Form>
          </FormPanel>
        </Card>
      ) : null}
      {isOpen.end ? (
        <Card id="end" title="Delete">
          <p>Deletes the synced data and the credentials. The base in Airtable is not changed.</p>
          <ButtonLink kind="danger" href={`${path}/delete`}>
            Delete this base…
          </ButtonLink>
        </Card>
      ) : null}
    </SettingsLayout>
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
