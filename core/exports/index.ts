/** Descriptions of a replica for analytics tools, and queries to start with. */
export { dbtSources } from "./dbt-sources";
export { erDiagram } from "./er-diagram";
export { type SampleQuery, sampleQueries } from "./sample-queries";
export { qualifiedName, sqlName } from "./sql-name";
