/** The reference of the management API, made from its description. */
export { ApiReference } from "./reference";
export { apiSections } from "./sections";
