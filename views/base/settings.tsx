/** The settings of a base, each with what it means; a new API key; and the end of it. */
import { Fragment } from "preact";
import type { Base, BaseSettings } from "../../core/control/bases";
import type { Workspace } from "../../core/control/budgets";
import { Button, ButtonLink, Card, Toggle } from "../components";
import { Field } from "../components/field";
import { WorkspaceChoice } from "./budget";
import { HistoryDays } from "./history-days";
import { Indexes } from "./indexes";

/** A setting as a form sends it, and as people read it. */
export interface Setting {
  /** In forms and in the API. */
  name:
    | "turbo"
    | "rapid"
    | "live"
    | "linked_records_as_text"
    | "lookups_as_text"
    | "link_views"
    | "history"
    | "notify"
    | "own_attachment_urls"
    | "replica_reads";
  key: Exclude<keyof BaseSettings, "paused" | "historyDays" | "indexes">;
  label: string;
  /** What stands between backticks is code. */
  hint: string;
}

const live: Setting = {
  name: "live",
  key: "live",
  label: "Live changes",
  hint: "The source tells us what changes, and it is in SQL within a second or two, however large the base is. Needs a key that may manage webhooks; with any other, all tables are read over and over.",
};

const turbo: Setting = {
  name: "turbo",
  key: "turbo",
  label: "Turbo",
  hint: "Sync uses up to 5 requests a second, all that the source allows, instead of 3. With live changes that goes for first syncs, rebuilds and reading changed records again; the sweep that follows a gap in the feed reads one table at a time and gets as many as the source's answers leave time for; the check in the background keeps to one request a second. For when you read from the database and write only through the proxy; leave it off where other integrations call the same base.",
};

const advanced: Setting[] = [
  {
    name: "linked_records_as_text",
    key: "linkedRecordsAsText",
    label: "Linked records as text",
    hint: "Columns of linked records become `text` with the first link instead of `text[]` with all of them. The tables concerned are rebuilt.",
  },
  {
    name: "lookups_as_text",
    key: "lookupsAsText",
    label: "Lookups as text",
    hint: "Lookup columns become `text` with the first value instead of `text[]` with all of them. The tables concerned are rebuilt.",
  },
  {
    name: "rapid",
    key: "rapid",
    label: "Rapid creates and updates",
    hint: "Creates and updates are shown within seconds; deletes and computed fields take longer: about 10 minutes for 30,000 records. For when slow deletes are fine, few computed fields are used, and the key may not manage webhooks. While it is on, it takes the place of live changes.",
  },
];

const analysts: Setting[] = [
  {
    name: "link_views",
    key: "linkViews",
    label: "Views over links",
    hint: "For each column of linked records there is a view, called `table__column`, with one row per link, ready to be joined.",
  },
  {
    name: "history",
    key: "history",
    label: "History of changes",
    hint: "Every change of a record is noted in the table `_sync_history`: old and new values, when it was seen, and whether a sync or a write through the proxy made it.",
  },
  {
    name: "notify",
    key: "notify",
    label: "Notifications",
    hint: "Whoever has run `LISTEN basetide` in the database is told the table and the ids of the records that changed.",
  },
];

const attachments: Setting = {
  name: "own_attachment_urls",
  key: "ownAttachmentUrls",
  label: "Attachment links that last",
  hint: "Attachments are stored as links of this console, which do not expire and lead whoever has one to the file in the source, in place of the source's own URLs, which end after about two hours. The rows concerned are read and written again.",
};

const replicaReads: Setting = {
  name: "replica_reads",
  key: "replicaReads",
  label: "Reads from the replica",
  hint: "Reads through the proxy with the key that this base is synced with are answered from the database where it holds all that is asked for, and cost none of the source's calls; the answer's header `x-basetide-answered-by` says by whom. Clients with other keys, and all without this setting, ask for it with the header `x-basetide-read: replica`. A database of your own, or a writable one, answers no reads.",
};

export const allSettings = [live, turbo, ...advanced, ...analysts, attachments, replicaReads];

export function SettingsPage(props: {
  base: Base;
  workspaces: Workspace[];
  keyError?: string | undefined;
  workspaceError?: string | undefined;
  historyError?: string | undefined;
  /** As they were written, and what is wrong with them. */
  indexes?: { written: string; error: string } | undefined;
}) {
  const { base, workspaces, keyError, workspaceError, historyError, indexes } = props;
  const path = `/bases/${base.id}`;
  return (
    <>
      <Card id="speed" title="Speed">
        <SettingForm base={base} setting={live} />
        <SettingForm base={base} setting={turbo} />
      </Card>
      <Card id="advanced" title="Advanced">
        {advanced.map((setting) => (
          <SettingForm key={setting.name} base={base} setting={setting} />
        ))}
      </Card>
      <Card id="analysts" title="For analysts">
        {analysts.map((setting) => (
          <Fragment key={setting.name}>
            <SettingForm base={base} setting={setting} />
            {setting.key === "history" ? <HistoryDays base={base} error={historyError} /> : null}
          </Fragment>
        ))}
      </Card>
      <Card id="indexes" title="Indexes">
        <Indexes base={base} written={indexes?.written} error={indexes?.error} />
      </Card>
      <Card id="attachments" title="Attachments">
        <SettingForm base={base} setting={attachments} />
        <RevokeLinks base={base} />
      </Card>
      <Card id="reads" title="Reads through the proxy">
        <SettingForm base={base} setting={replicaReads} />
      </Card>
      <WorkspaceChoice base={base} workspaces={workspaces} error={workspaceError} />
      <Card id="key" title="API key">
        <form method="post" action={`${path}/key`} class="stack narrow">
          <Field
            label="New API key"
            name="api_key"
            type="password"
            required
            autocomplete="off"
            error={keyError}
            hint="It is checked at the source before it takes the place of the old one. The old one is never shown."
          />
          <Button>Replace the key</Button>
        </form>
      </Card>
      <Card id="end" title="Delete">
        <p>
          The base in the source is not touched. The replica goes with everything in it, and the credentials.
        </p>
        <ButtonLink kind="danger" href={`${path}/delete`}>
          Delete this base…
        </ButtonLink>
      </Card>
    </>
  );
}

/** A form that htmx has sent, and what its change means to another one. */
export function ChangedSetting({ base, setting }: { base: Base; setting: Setting }) {
  return (
    <>
      <SettingForm base={base} setting={setting} />
      {setting.key === "rapid" ? <SettingForm base={base} setting={live} isNews /> : null}
      {setting.key === "ownAttachmentUrls" ? <RevokeLinks base={base} isNews /> : null}
    </>
  );
}

/** For links that were handed out, be the setting on or off by now. */
function RevokeLinks({ base, isNews }: { base: Base; isNews?: boolean }) {
  return (
    <div id="attachment-links" hx-swap-oob={isNews ? "outerMorph" : undefined}>
      {base.attachmentKeyVersion > 0 ? (
        <form method="post" action={`/bases/${base.id}/attachment-links/revoke`} class="stack">
          <p class="hint">
            Whoever has a link can open that one attachment. Revoking ends all links that were handed out, at
            once; a sync then writes new ones into the rows.
          </p>
          <Button kind="danger">Revoke all attachment links</Button>
        </form>
      ) : null}
    </div>
  );
}

/** Sent at once where a script runs, by its button where none does. */
function SettingForm({ base, setting, isNews }: { base: Base; setting: Setting; isNews?: boolean }) {
  const { name, key, label, hint } = setting;
  const path = `/bases/${base.id}/settings/${name}`;
  return (
    <form
      method="post"
      action={path}
      id={`setting-${name}`}
      class="setting"
      hx-swap-oob={isNews ? "outerMorph" : undefined}
    >
      <Toggle
        label={label}
        name="value"
        id={name}
        hint={
          <>
            {withCode(hint)}
            {key === "live" && base.settings.rapid ? (
              <strong> Now rapid mode is on and takes its place.</strong>
            ) : null}
          </>
        }
        checked={base.settings[key]}
        hx-post={path}
        hx-trigger="change"
        hx-target="closest form"
        hx-swap="outerMorph"
      />
      <button type="submit" class="button small needs-no-script">
        Save<span class="visually-hidden"> {label}</span>
      </button>
    </form>
  );
}

function withCode(text: string) {
  return text.split("`").map((part, index) => (index % 2 === 0 ? part : <code key={part}>{part}</code>));
}
