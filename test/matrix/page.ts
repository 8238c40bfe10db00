/** Writes `docs/compatibility.md` from the results of a whole matrix run. */
import { type Cell, PURPOSES, type Purpose, RIGHTS, type Rights, WAYS, type Way } from "./cells";
import type { Outcome } from "./run-cell";

export interface Result {
  cell: Cell;
  outcomes: Outcome[];
}

export interface RunFacts {
  /** `2026-11-22` */
  date: string;
  /** Full version by major version. */
  postgres: Record<string, string>;
  pgbouncer: string;
  bun: string;
}

const RIGHTS_SHOWN: Record<Purpose, Record<Rights, string>> = {
  "control plane": {
    superuser: "superuser",
    "createdb createrole": "`CREATEDB`, `CREATEROLE`, owner of the database",
    owner: "owner of the database",
  },
  "hosted cluster": {
    superuser: "superuser",
    "createdb createrole": "`CREATEDB`, `CREATEROLE`",
    owner: "neither",
  },
  "own database": {
    superuser: "superuser",
    "createdb createrole": "may create schemas",
    owner: "owner of one schema",
  },
};

const WAYS_SHOWN: Record<Way, string> = {
  direct: "direct",
  "pgbouncer session": "PgBouncer, session",
  "pgbouncer transaction": "PgBouncer, transaction",
  "tls alias": "TLS ends before the server, which knows the role by another name",
};

const TITLES: Record<Purpose, string> = {
  "control plane": "As control plane",
  "hosted cluster": "As hosted cluster",
  "own database": "As a customer's own database",
};

export function compatibilityPage(results: Result[], facts: RunFacts): string {
  const versions = [...new Set(results.map(({ cell }) => cell.version))].sort();
  return [
    "# Compatibility",
    "",
    "<!-- Written by `bun run matrix`. -->",
    "",
    "Reference for teams that choose a Postgres server: the versions, rights and kinds of connection that Basetide was tested with.",
    "",
    `Run on ${facts.date}: Postgres ${versions.map((version) => facts.postgres[version]).join(", ")}; PgBouncer ${facts.pgbouncer}; Bun ${facts.bun}.`,
    "",
    "Each cell is the result of a run of the whole service on servers of that version, with those rights and that connection.",
    "*refused*: Basetide refuses it, with the reason and the remedy; –: not tested. [Platforms](platforms/README.md) has a page for each",
    "provider.",
    "",
    ...PURPOSES.flatMap((purpose) => tableOf(purpose, versions, results)),
    ...refusals(results),
    ...stepsOf(results),
  ].join("\n");
}

function tableOf(purpose: Purpose, versions: string[], results: Result[]): string[] {
  const rows = RIGHTS.flatMap((rights) =>
    WAYS.map((way) => {
      const cells = versions.map((version) => {
        const found = results.find(
          ({ cell }) => cell.version === version && cell.rights === rights && cell.way === way,
        );
        return found ? shown(found.outcomes.find((outcome) => outcome.purpose === purpose)!) : "–";
      });
      return `| ${[RIGHTS_SHOWN[purpose][rights], WAYS_SHOWN[way], ...cells].join(" | ")} |`;
    }),
  );
  return [
    `## ${TITLES[purpose]}`,
    "",
    `| role | connection | ${versions.join(" | ")} |`,
    `|---|---|${"---|".repeat(versions.length)}`,
    ...rows,
    "",
  ];
}

function shown({ verdict, detail }: Outcome): string {
  if (verdict !== "failed") return verdict;
  return `**fails**: ${oneLine(detail).slice(0, 80)}`;
}

/** Returns the messages of refusals, each once. */
function refusals(results: Result[]): string[] {
  const rows = results.flatMap(({ cell, outcomes }) =>
    outcomes
      .filter(({ verdict }) => verdict === "refused")
      .map(({ purpose, detail }) => {
        const words =
          purpose === "hosted cluster" && cell.way !== "pgbouncer transaction" ? "rights" : "connection";
        return { key: `${purpose} ${words}`, row: `| ${purpose} | ${oneLine(withoutNames(detail))} |` };
      }),
  );
  const first = new Map(rows.toReversed().map(({ key, row }) => [key, row]));
  return ["## Messages of refusals", "", "| | |", "|---|---|", ...new Set(first.values()), ""];
}

/** Returns the longest list of steps of each purpose: the steps of a cell without a refusal. */
function stepsOf(results: Result[]): string[] {
  const lines = PURPOSES.map((purpose) => {
    const lists = results.map(({ outcomes }) => outcomes.find((one) => one.purpose === purpose)!.steps);
    const longest = lists.toSorted((a, b) => b.length - a.length)[0]!;
    return `- ${purpose}: ${longest.map(({ name }) => name).join(", ")}`;
  });
  return ["## Steps of a cell", "", ...lines, ""];
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").replaceAll("|", "\\|").trim();
}

/** Replaces names and ports, which differ between runs. */
function withoutNames(text: string): string {
  return text
    .replaceAll(/\b(control|cluster|own)_[0-9a-f]{8}\b/g, "$1")
    .replaceAll(/127\.0\.0\.1(:\d+)?/g, "127.0.0.1")
    .replace(/\w+: POST bases: (\d+) \{.*?"message":"(.*?)","request_id":"[^"]*"\}\}/, "$1: $2");
}
