/** Descriptions of a replica for analytics tools and for people, and queries to start with. */
export { diagramOf } from "./cached-layout";
export { dbtSources } from "./dbt-sources";
export {
  type Diagram,
  type DiagramBox,
  type DiagramLine,
  type End,
  HEAD_HEIGHT,
  type Point,
  ROW_HEIGHT,
} from "./diagram-layout";
export { erDiagram } from "./er-diagram";
export { qualifiedName, readableName } from "./readable-name";
export { type SampleQuery, sampleQueries } from "./sample-queries";
export { sqlDefinitions } from "./sql-ddl";
export { type TypesFile, type TypesInput, type TypesLanguage, typesIn, typesLanguages } from "./types";
