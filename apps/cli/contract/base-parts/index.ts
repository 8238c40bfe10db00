/** The parts of a base in the file, in the order in which `pull` writes them. */
import { destinationPart } from "./destination";
import { indexesPart } from "./indexes";
import { mutedFieldsPart } from "./muted-fields";
import { ownNamesPart } from "./own-names";
import type { BasePart } from "./part";
import { selectionPart } from "./selection";
import { settingsPart } from "./settings";
import { workspacePart } from "./workspace";

export type { BasePart, Changing, Connecting, Difference, PartContext } from "./part";

export const baseParts = [
  destinationPart,
  workspacePart,
  settingsPart,
  selectionPart,
  indexesPart,
  ownNamesPart,
  mutedFieldsPart,
] as readonly BasePart[];
