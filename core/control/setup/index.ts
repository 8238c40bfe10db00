/** Migrations, preparation and checks of the control plane, and its encryption. */
export { inspectControl } from "./control-check";
export { examineEncryption, rotateEncryption } from "./encryption";
export { migrateControl, pendingMigrations } from "./migrate";
export { prepareControl } from "./prepare-control";
