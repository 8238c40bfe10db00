/** Descriptions of a replica for the programs of analysts. */
export { dbtSources } from "./dbt-sources";
export { erDiagram } from "./er-diagram";
