#!/usr/bin/env bash
# Mermaid reads the words direction LR inside of quotes as a statement, and the table is gone.
#
# mermaid 11.17.2.
#
# Behavior: In an erDiagram, a table may have a quoted name, and a relation a quoted label. If the text contains direction LR, the diagram gets that
# direction, and the table or relation is left out without an error. A percent sign in a name is a parse error; in a label, it is not.
#
# Who meets it: Diagrams of bases whose tables and fields are named by people.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts mermaid@11.17.2 >/dev/null
cat >main.mjs <<'JS'
import mermaid from "mermaid";

await mermaid.parse("erDiagram\n  a {\n    text id\n  }");
const show = async (text) => {
  for (const line of [`a["${text}"]`, `a }o--o{ b : "${text}"`]) {
    const shown = await mermaid.mermaidAPI.getDiagramFromText(`erDiagram\n  ${line}`).then(
      ({ db }) => `${db.getDirection()}, ${db.getEntities().size} tables, ${db.getRelationships().length} relations`,
      (error) => error.message.split(":")[0],
    );
    console.log(line, "->", shown);
  }
};
await show("Tasks");
await show("in direction LR");
await show("50% done");
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
a["Tasks"] -> TB, 1 tables, 0 relations
a }o--o{ b : "Tasks" -> TB, 2 tables, 1 relations
a["in direction LR"] -> LR, 0 tables, 0 relations
a }o--o{ b : "in direction LR" -> LR, 0 tables, 0 relations
a["50% done"] -> Parse error on line 2
a }o--o{ b : "50% done" -> TB, 2 tables, 1 relations
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
