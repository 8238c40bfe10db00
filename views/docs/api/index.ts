/** The reference of the management API, made from its description. */

export { apiSections } from "./listing";
export { ApiReference } from "./reference";
