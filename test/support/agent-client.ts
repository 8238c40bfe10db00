/** The protocol's own client, as an agent uses it. */
import { type CallToolResult, Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

export const PROTOCOL_REVISIONS = ["2026-07-28", "2025-11-25", "2025-06-18"] as const;
type Revision = (typeof PROTOCOL_REVISIONS)[number];

export interface AgentClient {
  client: Client;
  /** Calls a tool. @returns its data and text; the text of the error if it failed */
  call(tool: string, input?: Record<string, unknown>): Promise<ToolResult>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface ToolResult {
  isError: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: tests read into it
  data: any;
  text: string;
  /** Of the whole result as it is sent. */
  bytes: number;
}

export async function agentClient(
  origin: string,
  token: string,
  revision: Revision = "2026-07-28",
): Promise<AgentClient> {
  const isModern = revision === "2026-07-28";
  const client = new Client(
    { name: "test", version: "1" },
    isModern
      ? { versionNegotiation: { mode: { pin: revision } } }
      : { supportedProtocolVersions: [revision] },
  );
  const transport = new StreamableHTTPClientTransport(new URL("/mcp", origin), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
  });
  await client.connect(transport);
  return {
    client,
    async call(name, input = {}) {
      const result = (await client.callTool({ name, arguments: input })) as CallToolResult;
      const [first] = result.content;
      return {
        isError: result.isError === true,
        data: result.structuredContent,
        text: first?.type === "text" ? first.text : "",
        bytes: Buffer.byteLength(JSON.stringify(result)),
      };
    },
    [Symbol.asyncDispose]: () => client.close(),
  };
}
