/** How to write to a base, and read it by its own API, through the proxy. */
import type { Base } from "../../core/control/bases";
import { Card, CopyField } from "../components";
import { Program } from "../components/program";
import { proxySnippets, type Snippet } from "./snippets";

const names: Record<Snippet["id"], string> = {
  curl: "curl",
  "airtable.js": "airtable.js",
  pyairtable: "pyairtable",
  fetch: "fetch",
  env: "Apps that use airtable.js, unchanged",
  node: "Any Node.js app, unchanged",
};

export function ProxyPage(props: { base: Base; proxyUrl: string; consoleUrl: string }) {
  const { base, proxyUrl, consoleUrl } = props;
  const { sourceBaseId, tables } = base;
  const table = tables[0]?.source_name ?? "Table 1";
  return (
    <>
      <Card id="proxy" title="Write through the proxy">
        <p>
          The proxy has the same API as Airtable: you only change the base address and keep your API key. When
          it has answered a create, update or delete, the next <code>SELECT</code> shows the change.
        </p>
        <CopyField id="proxy-address" label="Base address" value={`${proxyUrl}/api.airtable.com`} />
        <p class="muted">
          If all of the base's requests go through the proxy, they have priority over the sync and never get a
          429. You can then turn on Turbo in the <a href={`/bases/${base.id}/settings#speed`}>settings</a>.
        </p>
      </Card>
      {proxySnippets({ proxyUrl, consoleUrl, baseId: sourceBaseId, table }).map(({ id, code }) => (
        <Program
          key={id}
          id={`program-${id.replace(/\W/g, "-")}`}
          title={names[id]}
          name={`${names[id]} program`}
          code={code}
        />
      ))}
    </>
  );
}
