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
  env: "Programs built on airtable.js, without a change",
  node: "Any Node program, without a change",
};

export function ProxyPage(props: { base: Base; proxyUrl: string; consoleUrl: string }) {
  const { base, proxyUrl, consoleUrl } = props;
  const { sourceBaseId, tables } = base;
  const table = tables[0]?.source_name ?? "Table 1";
  return (
    <>
      <Card id="proxy" title="Write through the proxy">
        <p>
          The proxy speaks the source's own API: only the base address changes, and the API key stays yours.
          Once it has answered a create, update or delete, the next <code>SELECT</code> shows it.
        </p>
        <CopyField id="proxy-address" label="Base address" value={`${proxyUrl}/api.airtable.com`} />
        <p class="muted">
          When all of the base's requests go through the proxy, they come before the sync's and never meet a
          429: then turn on Turbo in the <a href={`/bases/${base.id}/settings#speed`}>settings</a>.
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
