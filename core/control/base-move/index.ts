/** Moves of bases between clusters. */
export { moveBase } from "./move-base";
