/** Code that uses a base through the proxy, ready to paste. The API key is read from AIRTABLE_API_KEY. */

export interface Snippet {
  id: "curl" | "airtable.js" | "pyairtable" | "fetch" | "env" | "node";
  language: "sh" | "javascript" | "python";
  code: string;
}

/** The path at which the console serves `apps/proxy/redirect.mjs`. */
export const REDIRECT_PATH = "/downloads/basetide-redirect.mjs";

/** The source's host in the proxy's URLs. */
const HOST = "api.airtable.com";

/** The address of the source's API behind the proxy. */
export function proxyEndpoint(proxyUrl: string): string {
  return `${proxyUrl}/${HOST}`;
}

/**
 * Each snippet lists a few records of a table; a client's other calls work in the same way.
 *
 * @param base.table the table's name in the source
 */
export function proxySnippets(base: {
  proxyUrl: string;
  consoleUrl: string;
  baseId: string;
  table: string;
}): Snippet[] {
  const endpoint = proxyEndpoint(base.proxyUrl);
  const records = `${endpoint}/v0/${base.baseId}/${encodeURIComponent(base.table)}?maxRecords=3`;
  const text = (value: string) => JSON.stringify(value);
  return [
    {
      id: "curl",
      language: "sh",
      code: `curl ${shellWord(records)} \\\n  -H "Authorization: Bearer $AIRTABLE_API_KEY"`,
    },
    {
      id: "airtable.js",
      language: "javascript",
      code: [
        `import Airtable from "airtable";`,
        "",
        "const airtable = new Airtable({",
        `  endpointUrl: ${text(endpoint)},`,
        "  apiKey: process.env.AIRTABLE_API_KEY,",
        "});",
        `const records = await airtable.base(${text(base.baseId)})(${text(base.table)}).select({ maxRecords: 3 }).all();`,
        "console.log(records.map((record) => record.fields));",
      ].join("\n"),
    },
    {
      id: "pyairtable",
      language: "python",
      code: [
        "import os",
        "from pyairtable import Api",
        "",
        `api = Api(os.environ["AIRTABLE_API_KEY"], endpoint_url=${text(endpoint)})`,
        `print(api.table(${text(base.baseId)}, ${text(base.table)}).all(max_records=3))`,
      ].join("\n"),
    },
    {
      id: "fetch",
      language: "javascript",
      code: [
        `const response = await fetch(${text(records)}, {`,
        '  headers: { Authorization: "Bearer " + process.env.AIRTABLE_API_KEY },',
        "});",
        "console.log(await response.json());",
      ].join("\n"),
    },
    { id: "env", language: "sh", code: `export AIRTABLE_ENDPOINT_URL=${shellWord(endpoint)}` },
    {
      id: "node",
      language: "sh",
      code: [
        `curl -sO ${shellWord(base.consoleUrl + REDIRECT_PATH)}`,
        `export BASETIDE_PROXY=${shellWord(base.proxyUrl)} NODE_OPTIONS="--import=$PWD/basetide-redirect.mjs"`,
      ].join("\n"),
    },
  ];
}

/** In single quotes, for any POSIX shell. */
export function shellWord(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
