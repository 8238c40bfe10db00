/** Descriptions of a replica for analytics tools. */
export { dbtSources } from "./dbt-sources";
export { erDiagram } from "./er-diagram";
