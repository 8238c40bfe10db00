/** The address of the protocol's endpoint, below the console's. */
export const MCP_PATH = "/mcp";
