/** Migrations, preparation and checks of the control plane, and its encryption. */
export { inspectControl } from "./control-check";
export { examineSeals, rotateSeals } from "./encryption";
export { migrateControl, pendingMigrations } from "./migrate";
export { prepareControl } from "./prepare-control";
