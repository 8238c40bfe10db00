/** Descriptions of a replica for analytics tools, and queries to start with. */
export { dbtSources } from "./dbt-sources";
export { erDiagram } from "./er-diagram";
export { type FirstQuery, firstQueries } from "./first-queries";
export { qualifiedName, readableName } from "./readable-name";
