/** Drafts of bases: key, base and destination, before the base is created. */
export { measuredSizes } from "./base-size";
export type { DraftBudget } from "./draft-workspace";
export {
  type Choice,
  createDraft,
  type Draft,
  draftChoices,
  draftSelectable,
  finishDraft,
  getDraft,
  latestDraft,
  recheckDraftKey,
  setDraftBase,
  setDraftDestination,
  setDraftKey,
  setDraftSelection,
} from "./drafts";
