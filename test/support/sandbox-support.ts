/** Shared by the sandbox's tests: a small base, and a client that returns status, body and headers. */
import { afterAll, beforeAll, beforeEach } from "vitest";
import { type SandboxHandle, startSandbox } from "../../apps/sandbox/server";
import type { SettingsPatch } from "../../apps/sandbox/settings";

export interface Reply {
  status: number;
  // Untyped: a test states what it expects of an answer.
  body: Json;
  headers: Headers;
}

export interface Json {
  [name: string]: Json;
  [index: number]: Json;
}

/** Without rate limits, so that a test meets a limit only if it tests it. */
export function quietSandbox(settings: SettingsPatch = {}): Promise<SandboxHandle> {
  return startSandbox({ port: 0, settings: { rateLimitOff: true, ...settings } });
}

/** One sandbox for a file, with a new base (`crew`) in it for each test. */
export function sandboxScene() {
  let sandbox: SandboxHandle;
  let baseId: string;

  function renew(): void {
    sandbox.control.reset();
    sandbox.control.settings({ rateLimitOff: true });
    baseId = crew(sandbox);
  }

  beforeAll(async () => {
    sandbox = await quietSandbox();
  });
  afterAll(() => sandbox.stop());
  beforeEach(renew);

  return {
    get sandbox() {
      return sandbox;
    },
    get baseId() {
      return baseId;
    },
    call: (method: string, path: string, body?: unknown, key?: string): Promise<Reply> =>
      call(sandbox, method, path, body, key),
    /** Resets the sandbox, and creates the base again. */
    renew,
  };
}

/** Calls the API with the sandbox's own key, or with another. */
export async function call(
  sandbox: SandboxHandle,
  method: string,
  path: string,
  body?: unknown,
  key = sandbox.key,
): Promise<Reply> {
  const response = await fetch(`${sandbox.url}/v0${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Json, headers: response.headers };
}

/** The type and message of an error answer, in any of its forms. */
export function errorOf({ status, body }: Reply): unknown[] {
  const error = body.error as unknown as { type: string; message?: string } | string;
  return typeof error === "string" ? [status, error] : [status, error.type, error.message];
}

export const PEOPLE = "tblPeople00000001";
export const TEAMS = "tblTeams000000001";

/** Two tables with one field of each kind that the tests write, linked both ways. */
export function crew(sandbox: SandboxHandle): string {
  return sandbox.control.createBase({
    name: "Crew",
    tables: [
      {
        id: PEOPLE,
        name: "People / staff",
        fields: [
          { id: "fldName0000000001", name: "Name", type: "singleLineText" },
          { id: "fldAge00000000001", name: "Age", type: "number", options: { precision: 0 } },
          {
            id: "fldActive00000001",
            name: "Active",
            type: "checkbox",
            options: { icon: "check", color: "greenBright" },
          },
          { id: "fldBorn0000000001", name: "Born", type: "date", options: {} },
          { id: "fldSeen0000000001", name: "Seen", type: "dateTime", options: { timeZone: "Europe/Paris" } },
          {
            id: "fldRole0000000001",
            name: "Role",
            type: "singleSelect",
            options: {
              choices: [
                { id: "selCook0000000001", name: "Cook" },
                { id: "selMate0000000001", name: "Mate" },
              ],
            },
          },
          {
            id: "fldSkills00000001",
            name: "Skills",
            type: "multipleSelects",
            options: { choices: [{ id: "selKnots000000001", name: "knots" }] },
          },
          {
            id: "fldTeam0000000001",
            name: "Team",
            type: "multipleRecordLinks",
            options: { linkedTableId: TEAMS, inverseLinkFieldId: "fldMembers0000001" },
          },
          {
            id: "fldFiles000000001",
            name: "Files",
            type: "multipleAttachments",
            options: { isReversed: false },
          },
          { id: "fldOwner000000001", name: "Owner", type: "singleCollaborator" },
          { id: "fldStory000000001", name: "Story", type: "richText" },
          {
            id: "fldStars000000001",
            name: "Stars",
            type: "rating",
            options: { icon: "star", max: 5, color: "yellowBright" },
          },
          { id: "fldNumber00000001", name: "Number", type: "autoNumber" },
          {
            id: "fldTeamSize000001",
            name: "Team sizes",
            type: "multipleLookupValues",
            options: { recordLinkFieldId: "fldTeam0000000001", fieldIdInLinkedTable: "fldSize0000000001" },
          },
          {
            id: "fldLabel000000001",
            name: "Label",
            type: "formula",
            options: {
              formula: "UPPER({fldName0000000001})&'/'&{fldTeam0000000001}",
              result: { type: "singleLineText" },
            },
          },
          {
            id: "fldModified000001",
            name: "Modified",
            type: "lastModifiedTime",
            options: { referencedFieldIds: [] },
          },
        ],
        records: [
          {
            id: "recAnn00000000001",
            createdTime: "2024-03-01T10:00:00.000Z",
            fields: { Name: "Ann", Age: 41, Team: ["recDeck0000000001"] },
          },
          {
            id: "recBob00000000002",
            createdTime: "2024-03-02T10:00:00.000Z",
            fields: { Name: "Bob", Age: 0, Role: "Mate" },
          },
          {
            id: "recCat00000000003",
            createdTime: "2024-03-03T10:00:00.000Z",
            fields: { Name: "Cat", Active: true },
          },
        ],
      },
      {
        id: TEAMS,
        name: "Teams",
        fields: [
          { id: "fldTeamName000001", name: "Name", type: "singleLineText" },
          { id: "fldSize0000000001", name: "Size", type: "number", options: { precision: 0 } },
          {
            id: "fldMembers0000001",
            name: "Members",
            type: "multipleRecordLinks",
            options: { linkedTableId: PEOPLE, inverseLinkFieldId: "fldTeam0000000001" },
          },
          {
            id: "fldAges0000000001",
            name: "Ages",
            type: "rollup",
            aggregation: "SUM",
            options: {
              recordLinkFieldId: "fldMembers0000001",
              fieldIdInLinkedTable: "fldAge00000000001",
              result: { type: "number" },
            },
          },
          {
            id: "fldHeads000000001",
            name: "Heads",
            type: "count",
            options: { recordLinkFieldId: "fldMembers0000001" },
          },
        ],
        records: [
          { id: "recDeck0000000001", fields: { Name: "Deck", Size: 3 } },
          { id: "recGalley00000002", fields: { Name: "Galley", Size: 1 } },
        ],
      },
    ],
  });
}
