/** Migrations, preparation and checks of the control plane, and its encryption. */
export { addCheckedCluster, changeCheckedCluster } from "./add-cluster";
export { inspectControl } from "./control-check";
export {
  contextOf,
  type EncryptedColumn,
  encryptedColumns,
  examineEncryption,
  rotateEncryption,
} from "./encryption";
export { migrateControl, pendingMigrations } from "./migrate";
export { prepareControl } from "./prepare-control";
export { encryptTwoFactor } from "./two-factor-encryption";
