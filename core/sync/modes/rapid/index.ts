/** Rapid mode. */
export { rapidBase } from "./rapid";
