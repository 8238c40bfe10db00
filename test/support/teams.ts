/** Two related tables: teams, and people who belong to some teams and show their names. */
import type { SourceField, SourceRecord, SourceTable } from "../../core/source";

type Row = Record<string, unknown> & { id: string };

export function sourceField(
  id: string,
  name: string,
  type: SourceField["type"],
  options?: Record<string, unknown>,
): SourceField {
  return { id, name, type, sourceType: type, ...(options && { options }) };
}

export function teamsAndPeople(): { teams: SourceTable; people: SourceTable } {
  const links = (linkedTableId: string, inverseLinkFieldId: string) => ({
    linkedTableId,
    inverseLinkFieldId,
  });
  const lookup = { recordLinkFieldId: "fldPTeams", fieldIdInLinkedTable: "fldTName" };
  return {
    teams: {
      id: "tblT",
      name: "Teams",
      primaryFieldId: "fldTName",
      fields: [
        sourceField("fldTName", "Name", "text"),
        sourceField("fldTPeople", "People", "links", links("tblP", "fldPTeams")),
      ],
    },
    people: {
      id: "tblP",
      name: "People",
      primaryFieldId: "fldPName",
      fields: [
        sourceField("fldPName", "Name", "text"),
        sourceField("fldPTeams", "Teams", "links", links("tblT", "fldTPeople")),
        sourceField("fldPNames", "Team names", "lookup", lookup),
      ],
    },
  };
}

export function recordOf(id: string, fields: Record<string, unknown>): SourceRecord {
  return { id, createdTime: "2024-05-01T12:34:56.000Z", fields };
}

export function teamRecord(id: string, name: string, people: string[] = []): SourceRecord {
  return recordOf(id, { fldTName: name, ...(people.length > 0 && { fldTPeople: people }) });
}

export function personRecord(
  id: string,
  name: string,
  teams: string[] = [],
  names: string[] = [],
): SourceRecord {
  return recordOf(id, { fldPName: name, ...(teams.length > 0 && { fldPTeams: teams, fldPNames: names }) });
}

/** The expected rows of these records, ordered by id. */
export const rowsOf = {
  teams: (records: Iterable<SourceRecord>): Row[] =>
    rows(records, { name: "fldTName", people: "fldTPeople" }),
  people: (records: Iterable<SourceRecord>): Row[] =>
    rows(records, { name: "fldPName", teams: "fldPTeams", team_names: "fldPNames" }),
};

function rows(records: Iterable<SourceRecord>, columns: Record<string, string>): Row[] {
  return [...records]
    .map(({ id, fields }) => ({
      id,
      created_time: "2024-05-01T12:34:56",
      ...Object.fromEntries(
        Object.entries(columns).map(([name, fieldId]) => [name, fields[fieldId] ?? null]),
      ),
    }))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
}
