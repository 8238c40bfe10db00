/** Request and answer schemas of the management API. The OpenAPI document is generated from them. */
export * from "./base";
export * from "./budgets";
export * from "./connect";
export * from "./history";
export * from "./names";
export * from "./selection";
