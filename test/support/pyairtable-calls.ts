/**
 * The HTTP requests that pyairtable 3 sends for each of its calls: method, path with its query as `requests` escapes
 * it, and the body as Python writes JSON. Taken from the library's source and documentation.
 */

/** The objects that the calls of one run use; filled in from the answers to earlier ones. */
export interface Scene {
  baseId: string;
  tableId: string;
  /** Ids of the records, in the order in which they were created. */
  recordIds: string[];
  commentId: string;
  fieldId: string;
  webhookId: string;
  offset: string;
}

export interface PyairtableCall {
  /** The call as a program writes it. */
  name: string;
  method: "GET" | "POST" | "PATCH" | "PUT" | "DELETE";
  /** Below `/v0/`. */
  path: (scene: Scene) => string;
  body?: (scene: Scene) => unknown;
  /** The host of uploads; the API's unless given. */
  host?: "content.airtable.com";
  status?: number;
  /** Stores the values from the answer that later calls use. */
  keep?: (scene: Scene, answer: never) => void;
  /** Changes records; SQL shows the change as soon as the call is answered. */
  writes?: true;
}

/** The headers of a request by `requests`, besides its authorization and length. */
export const PYTHON_HEADERS = {
  "User-Agent": "python-requests/2.32.3",
  "Accept-Encoding": "gzip, deflate",
  Accept: "*/*",
  Connection: "keep-alive",
};

/** Formats like `json.dumps`: a space after colons and commas, and only ASCII. */
export function pythonJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(pythonJson).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    const members = Object.entries(value).map(
      ([name, member]) => `${pythonJson(name)}: ${pythonJson(member)}`,
    );
    return `{${members.join(", ")}}`;
  }
  return JSON.stringify(value).replace(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** As `urllib.parse.quote(name, safe="")` has it. */
export const TABLE = "Tâches / « à faire »";
const QUOTED = "T%C3%A2ches%20%2F%20%C2%AB%20%C3%A0%20faire%20%C2%BB";

const table = ({ baseId }: Scene) => `${baseId}/${QUOTED}`;
const record = (index: number) => (scene: Scene) => `${table(scene)}/${scene.recordIds[index]}`;
const comments = (scene: Scene) => `${record(0)(scene)}/comments`;
const fields = ({ baseId, tableId }: Scene) => `meta/bases/${baseId}/tables/${tableId}/fields`;

/** The properties of every write of records, besides its records. */
const plain = { typecast: false, returnFieldsByFieldId: false };

interface RecordAnswer {
  id: string;
  records: { id: string }[];
}
const keepRecord = (scene: Scene, { id }: RecordAnswer) => void scene.recordIds.push(id);
const keepRecords = (scene: Scene, { records }: RecordAnswer) =>
  void scene.recordIds.push(...records.map(({ id }) => id));

/** In a URL it would be longer than 16,000 characters: sent by POST. */
const longFormula = `OR(${Array.from({ length: 700 }, (_, index) => `{Name}='number ${index}'`).join(",")})`;

export const pyairtableCalls: PyairtableCall[] = [
  { name: "api.whoami()", method: "GET", path: () => "meta/whoami" },
  { name: "api.bases()", method: "GET", path: () => "meta/bases" },
  {
    name: "base.schema()",
    method: "GET",
    path: ({ baseId }) => `meta/bases/${baseId}/tables?include=visibleFieldIds`,
  },
  {
    name: 'table.create({"Name": "Łódź 💡", …})',
    method: "POST",
    path: table,
    body: () => ({ fields: { Name: "Łódź 💡", Count: 1, Done: true }, ...plain }),
    keep: keepRecord,
    writes: true,
  },
  {
    name: "table.create(…, typecast=True, use_field_ids=True)",
    method: "POST",
    path: table,
    body: () => ({
      fields: { Name: "b", Tags: ["new", "red"] },
      typecast: true,
      returnFieldsByFieldId: true,
    }),
    keep: keepRecord,
    writes: true,
  },
  {
    name: "table.batch_create(…), ten at once",
    method: "POST",
    path: table,
    body: () => ({
      records: Array.from({ length: 10 }, (_, index) => ({
        fields: { Name: `number ${index}`, Count: index },
      })),
      ...plain,
    }),
    keep: keepRecords,
    writes: true,
  },
  { name: "table.get(id)", method: "GET", path: record(0) },
  {
    name: "table.get(id, use_field_ids=True)",
    method: "GET",
    path: (scene) => `${record(1)(scene)}?returnFieldsByFieldId=1`,
  },
  {
    name: "table.get() of a record that is not there",
    method: "GET",
    path: (scene) => `${table(scene)}/rec00000000000000`,
    status: 404,
  },
  {
    name: 'table.first(formula=match({"Name": "b"}))',
    method: "GET",
    path: (scene) => `${table(scene)}?filterByFormula=%7BName%7D%3D%27b%27&pageSize=1&maxRecords=1`,
  },
  {
    name: 'table.all(fields=["Name", "Count"], sort=["-Count"], max_records=5)',
    method: "GET",
    path: (scene) =>
      `${table(scene)}?maxRecords=5&fields%5B%5D=Name&fields%5B%5D=Count` +
      "&sort%5B0%5D%5Bdirection%5D=desc&sort%5B0%5D%5Bfield%5D=Count",
  },
  {
    name: "table.iterate(page_size=5), first page",
    method: "GET",
    path: (scene) => `${table(scene)}?pageSize=5`,
    keep: (scene, { offset }: { offset: string }) => {
      scene.offset = offset;
    },
  },
  {
    name: "table.iterate(page_size=5), second page",
    method: "GET",
    path: (scene) => `${table(scene)}?pageSize=5&offset=${encodeURIComponent(scene.offset)}`,
  },
  {
    name: "table.all() with a formula that is too long for a URL",
    method: "POST",
    path: (scene) => `${table(scene)}/listRecords`,
    body: () => ({
      filterByFormula: longFormula,
      fields: ["Name"],
      sort: [{ field: "Name", direction: "asc" }],
    }),
  },
  {
    name: "table.update(id, fields)",
    method: "PATCH",
    path: record(0),
    body: () => ({ fields: { Count: 2, Done: null }, ...plain }),
    writes: true,
  },
  {
    name: "table.update(id, fields, replace=True)",
    method: "PUT",
    path: record(0),
    body: () => ({ fields: { Name: "replaced" }, ...plain }),
    writes: true,
  },
  {
    name: "table.update() of a field that is not there",
    method: "PATCH",
    path: record(0),
    body: () => ({ fields: { Unknown: 1 }, ...plain }),
    status: 422,
  },
  {
    name: "table.batch_update(…)",
    method: "PATCH",
    path: table,
    body: ({ recordIds }) => ({
      records: recordIds.slice(2, 5).map((id, index) => ({ id, fields: { Count: 100 + index } })),
      ...plain,
    }),
    writes: true,
  },
  {
    name: "table.batch_update(…, replace=True)",
    method: "PUT",
    path: table,
    body: ({ recordIds }) => ({
      records: recordIds.slice(5, 7).map((id, index) => ({ id, fields: { Name: `only ${index}` } })),
      ...plain,
    }),
    writes: true,
  },
  {
    name: 'table.batch_upsert(…, key_fields=["Name"])',
    method: "PATCH",
    path: table,
    body: () => ({
      records: [
        { fields: { Name: "number 8", Count: 8.5 } },
        { fields: { Name: "made by upsert", Count: 3 } },
      ],
      ...plain,
      performUpsert: { fieldsToMergeOn: ["Name"] },
    }),
    writes: true,
  },
  {
    name: "table.batch_upsert(…, replace=True)",
    method: "PUT",
    path: table,
    body: ({ recordIds }) => ({
      records: [{ id: recordIds[10], fields: { Name: "by id" } }, { fields: { Name: "b" } }],
      ...plain,
      performUpsert: { fieldsToMergeOn: ["Name"] },
    }),
    writes: true,
  },
  {
    name: "table.upload_attachment(…), with the patch of the proxy guide",
    method: "POST",
    host: "content.airtable.com",
    path: ({ baseId, recordIds }) => `${baseId}/${recordIds[0]}/Files/uploadAttachment`,
    body: () => ({
      contentType: "text/plain",
      filename: "a.txt",
      // `base64.encodebytes` breaks lines.
      file: `${btoa("hello, ".repeat(11)).replace(/.{76}/g, "$&\n")}\n`,
    }),
    writes: true,
  },
  {
    name: "table.add_comment(id, text)",
    method: "POST",
    path: comments,
    body: () => ({ text: "Hello, « you »" }),
    keep: (scene, { id }: { id: string }) => {
      scene.commentId = id;
    },
  },
  { name: "table.comments(id)", method: "GET", path: comments },
  {
    name: "comment.save()",
    method: "PATCH",
    path: (scene) => `${comments(scene)}/${scene.commentId}`,
    body: () => ({ text: "Never mind!" }),
  },
  { name: "comment.delete()", method: "DELETE", path: (scene) => `${comments(scene)}/${scene.commentId}` },
  { name: "table.delete(id)", method: "DELETE", path: record(2), writes: true },
  {
    name: "table.batch_delete(ids)",
    method: "DELETE",
    path: (scene) =>
      `${table(scene)}?${scene.recordIds
        .slice(3, 6)
        .map((id) => `records%5B%5D=${id}`)
        .join("&")}`,
    writes: true,
  },
  {
    name: "base.webhooks()",
    method: "GET",
    path: ({ baseId }) => `bases/${baseId}/webhooks`,
  },
  {
    name: "base.add_webhook(…)",
    method: "POST",
    path: ({ baseId }) => `bases/${baseId}/webhooks`,
    body: () => ({
      notificationUrl: null,
      specification: { options: { filters: { dataTypes: ["tableData"] } } },
    }),
    keep: (scene, { id }: { id: string }) => {
      scene.webhookId = id;
    },
  },
  {
    name: "webhook.payloads()",
    method: "GET",
    path: ({ baseId, webhookId }) => `bases/${baseId}/webhooks/${webhookId}/payloads?cursor=1`,
  },
  {
    name: "webhook.delete()",
    method: "DELETE",
    path: ({ baseId, webhookId }) => `bases/${baseId}/webhooks/${webhookId}`,
  },
  {
    name: "table.create_field(…)",
    method: "POST",
    path: fields,
    body: () => ({ name: "Notes", type: "multilineText", description: "by a program" }),
    keep: (scene, { id }: { id: string }) => {
      scene.fieldId = id;
    },
  },
  {
    name: "field_schema.save()",
    method: "PATCH",
    path: (scene) => `${fields(scene)}/${scene.fieldId}`,
    body: () => ({ name: "Notes, renamed", description: "again" }),
  },
  {
    name: "base.create_table(…)",
    method: "POST",
    path: ({ baseId }) => `meta/bases/${baseId}/tables`,
    body: () => ({ name: "Another", fields: [{ name: "Name", type: "singleLineText" }] }),
  },
];
