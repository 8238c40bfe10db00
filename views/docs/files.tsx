/** A folder of files that the documentation refers to, such as dashboards. */
import { DocsFrame } from "./frame";
import type { DocGroup } from "./types";

export function DocFiles({ folder, names, groups }: { folder: string; names: string[]; groups: DocGroup[] }) {
  return (
    <DocsFrame groups={groups} current="/docs/files">
      <h1>{folder}</h1>
      <ul class="docs-files">
        {names.map((name) => (
          <li key={name}>
            <a href={`/docs/files/${name}`}>{name.slice(folder.length + 1)}</a>
          </li>
        ))}
      </ul>
    </DocsFrame>
  );
}
