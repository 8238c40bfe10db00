/** Old names that still work, until when, and what still uses them. */
import type { Base } from "../../core/control/bases";
import { cutText } from "../../core/cut-text";
import type { Alias, LostAlias } from "../../core/replica";
import type { OldNameUse } from "../../core/sql-editor";
import { Card, Table, Time } from "../components";
import { counted } from "../format";

export interface OldNamesProps {
  base: Base;
  aliases: Alias[];
  lost: LostAlias[];
  uses: OldNameUse[];
  knowsStatements: boolean;
}

/** Of the text of what uses a name. */
const MOST_SHOWN = 300;

export function OldNamesCard({ base, aliases, lost, uses, knowsStatements }: OldNamesProps) {
  if (aliases.length + lost.length === 0) return null;
  return (
    <Card id="old-names" title={aliases.length > 0 ? "Old names that still work" : "Old names"}>
      {aliases.length > 0 ? <KeptNames aliases={aliases} uses={uses} /> : null}
      {lost.length > 0 ? <LostNames lost={lost} uses={uses} /> : null}
      {uses.length > 0 ? (
        <>
          <h3>What still uses them</h3>
          <Uses base={base} uses={uses} />
        </>
      ) : null}
      <p class="hint">
        Triggers read NULL under an old name, or fail.{" "}
        {knowsStatements
          ? "Statements are those that pg_stat_statements has counted since its last reset."
          : "Not all statements of your programs are known: the server does not have the extension pg_stat_statements, or Basetide may not read it."}
      </p>
    </Card>
  );
}

function KeptNames({ aliases, uses }: Pick<OldNamesProps, "aliases" | "uses">) {
  return (
    <Table
      caption="Old names that still work"
      rows={aliases}
      columns={(column) => [
        column({ text: "Old name", isHead: true, class: "wrap" }, (alias) => (
          <code>{pathOf(alias, alias.name)}</code>
        )),
        column({ text: "Now", class: "wrap" }, (alias) => (
          <code>{pathOf(alias, alias.column ?? alias.table)}</code>
        )),
        column("Works until", (alias) => <Time at={alias.expiresAt} form="minute" />),
        column("Used by", (alias) => usedBy(alias, uses)),
      ]}
    />
  );
}

function LostNames({ lost, uses }: Pick<OldNamesProps, "lost" | "uses">) {
  return (
    <Table
      caption="Old names that are not kept"
      rows={lost}
      columns={(column) => [
        column({ text: "Old name, not kept", isHead: true, class: "wrap" }, (alias) => (
          <code>{pathOf(alias, alias.name)}</code>
        )),
        column({ text: "Now", class: "wrap" }, (alias) => (
          <code>{pathOf(alias, alias.column ?? alias.table)}</code>
        )),
        column({ text: "Why", class: "wrap" }, (alias) => alias.obstacle),
        column("Used by", (alias) => usedBy(alias, uses)),
      ]}
    />
  );
}

/** What uses names, with the beginning of its text. */
export function Uses({ base, uses }: Pick<OldNamesProps, "base" | "uses">) {
  return (
    <ul class="log">
      {uses.map((use) => (
        <li key={`${use.kind} ${use.id ?? use.name} ${use.text}`}>
          <span class="muted small nowrap">{kinds[use.kind]}</span>
          <span class="wrap">
            {use.id ? (
              <a href={`/bases/${base.id}/sql?saved=${encodeURIComponent(use.id)}`}>
                <bdi>{use.name}</bdi>
              </a>
            ) : (
              <bdi>{use.name}</bdi>
            )}{" "}
            <code>{cutText(use.text.replace(/\s+/g, " "), MOST_SHOWN)}</code>{" "}
            <span class="muted">
              {use.calls === undefined ? "" : `${counted(use.calls, "call")}. `}
              Uses {use.aliases.map((alias) => pathOf(alias, alias.name)).join(", ")}
            </span>
          </span>
        </li>
      ))}
    </ul>
  );
}

const kinds: Record<OldNameUse["kind"], string> = {
  "saved query": "Saved query",
  view: "View",
  function: "Function",
  trigger: "Trigger",
  statement: "Statement",
};

function pathOf({ fieldId, table }: Alias, name: string): string {
  return fieldId === null ? name : `${table}.${name}`;
}

function usedBy(alias: Alias, uses: OldNameUse[]): string {
  const using = uses.filter(({ aliases }) =>
    aliases.some(
      (one) => one.name === alias.name && one.tableId === alias.tableId && one.fieldId === alias.fieldId,
    ),
  );
  return using.length === 0 ? "nothing that is known" : counted(using.length, "place");
}
