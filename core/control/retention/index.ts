/** How long the control plane keeps each kind of row. */
export { SCHEMA_CHANGES_KEPT, trimTables } from "./retention";
