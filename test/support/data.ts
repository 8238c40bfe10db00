/** The folder of real bases that some tests read. They are large, and not part of this repository. */
import { findDataFolder } from "../../apps/up/data-folder";

/** The folder, or undefined if it is absent; a test that needs it is skipped with `noDataReason`. */
export const dataFolder: string | undefined = findDataFolder(process.env);

export const noDataReason = "the real bases are not there; set BASETIDE_DATA to their folder";
