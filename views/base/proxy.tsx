/** How to write to a base, and read it by its own API, through the proxy. */
import type { Base } from "../../core/control/bases";
import { Button, Card, CopyField, ErrorNote, Form, Link, Note, ProgramText, Tabs } from "../components";
import { changesPath } from "./change-sets";
import { proxyEndpoint, proxySnippets, type Snippet } from "./snippets";
import { airtableJsWrite, curlWrite, pythonWrite, type WriteExample } from "./write-snippets";

const names: Record<Snippet["id"], string> = {
  curl: "curl",
  "airtable.js": "airtable.js",
  pyairtable: "pyairtable",
  fetch: "fetch",
  env: "Apps that use airtable.js, unchanged",
  node: "Any Node.js app, unchanged",
};

const writers = {
  curl: { name: "curl", code: curlWrite },
  "airtable.js": { name: "airtable.js", code: airtableJsWrite },
  python: { name: "Python", code: pythonWrite },
} as const;

export type Writer = keyof typeof writers;

export function isWriter(id: unknown): id is Writer {
  return typeof id === "string" && Object.hasOwn(writers, id);
}

/** A record that was written through the proxy. */
interface TriedWrite {
  recordId: string;
  /** What SQL shows, as JSON; null if it does not show the record. */
  row: string | null;
}

export interface ProxyProps {
  base: Base;
  proxyUrl: string;
  consoleUrl: string;
  /** With this base's names; null before a table with a text field is there. */
  example: WriteExample | null;
  writer: Writer;
  /** Whether the base is one of a sandbox, in which the console may write. */
  canTry: boolean;
  tried?: TriedWrite | undefined;
  error?: string | undefined;
}

export function ProxyPage(props: ProxyProps) {
  const { base, proxyUrl, consoleUrl, example } = props;
  const { sourceBaseId, tables } = base;
  const table = example?.table ?? tables[0]?.source_name ?? "Table 1";
  return (
    <>
      <Card id="proxy" title="Write through the proxy">
        <p>
          The proxy has the same API as Airtable: you only change the base address and keep your API key. When
          it has answered a create, update or delete, the next <code>SELECT</code> shows the change.
        </p>
        {base.settings.changeSets ? (
          <p>
            To change many records at once, with a review or an undo, use{" "}
            <Link href={changesPath(base)}>change sets</Link>.
          </p>
        ) : null}
        {base.settings.sqlWrites ? (
          <p>
            SQL users write in the schema <code>write</code>: see{" "}
            <Link href={`/bases/${base.id}/writes`}>what they have written</Link>.
          </p>
        ) : null}
        <CopyField id="proxy-address" label="Base address" value={proxyEndpoint(proxyUrl)} />
        <p class="muted">
          If all of the base's requests go through the proxy, they have priority over the sync and never get a
          429. You can then turn on Turbo in the <a href={`/bases/${base.id}/settings#speed`}>settings</a>.
        </p>
      </Card>
      {example ? <Writes {...props} example={example} /> : null}
      <Card id="proxy-reads" title="Read through the proxy, or redirect a whole app">
        <p class="muted">
          Put the base address in front of Airtable's host. Reads and all other calls pass unchanged.
        </p>
        <details>
          <summary>Examples for curl and your client</summary>
          <div class="stack">
            {proxySnippets({ proxyUrl, consoleUrl, baseId: sourceBaseId, table }).map(({ id, code }) => (
              <ProgramText key={id} id={`program-${id.replace(/\W/g, "-")}`} name={names[id]} code={code} />
            ))}
          </div>
        </details>
      </Card>
    </>
  );
}

function Writes({ base, example, writer, canTry, tried, error }: ProxyProps & { example: WriteExample }) {
  const path = `/bases/${base.id}/proxy`;
  const tabPath = (id: string) => `${path}?with=${id}#proxy-writes`;
  return (
    <Card
      id="proxy-writes"
      title="Create, update, and see it in SQL"
      actions={
        canTry ? (
          <Form action={`${path}/try?with=${writer}`}>
            <Button kind="primary">Try it</Button>
          </Form>
        ) : null
      }
    >
      {error ? <ErrorNote>{error}</ErrorNote> : null}
      {tried ? <Tried tried={tried} example={example} /> : null}
      <Tabs
        look="client-tabs"
        label="Language"
        current={tabPath(writer)}
        tabs={Object.entries(writers).map(([id, { name }]) => ({ href: tabPath(id), text: name }))}
      />
      <p class="muted small">
        Set <code>AIRTABLE_API_KEY</code> to a token that may write, and <code>DATABASE_URL</code> to the URL
        from <Link href={`/bases/${base.id}/connect`}>Connect</Link>.
      </p>
      <ProgramText
        id="proxy-write"
        name={`${writers[writer].name}: create and update`}
        code={writers[writer].code(example)}
      />
    </Card>
  );
}

function Tried({ tried, example }: { tried: TriedWrite; example: WriteExample }) {
  const { recordId, row } = tried;
  const requests = `${example.table}: POST, then PATCH /${recordId}`;
  if (row === null) {
    return (
      <Note tone="warn" title="The record was written, and SQL does not show it yet">
        <p class="wrap">
          <code>{requests}</code>. Reload this page in a moment.
        </p>
      </Note>
    );
  }
  return (
    <Note tone="good" title="It works: SQL shows the record that was just written">
      {[requests, `${example.sql}'${recordId}'`, row].map((text) => (
        <p key={text} class="wrap">
          <code>{text}</code>
        </p>
      ))}
    </Note>
  );
}
