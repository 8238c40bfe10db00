/** Connections to database servers that customers host, through a gateway process. */
export { gateway } from "./gateway";
export { GATEWAY_SEVERITY, LINK_ADDRESS, LINK_TLS } from "./messages";
export { observeGateway } from "./metrics";
export { ExternalServer, type ServerUrl } from "./server";
