/** Reads that a replica answers in the source's own JSON. */
export { answerRead, type ReadAnswer } from "./answer-read";
export { isOurOffset } from "./offset";
export { type CallTarget, parseRead, type ReadRequest } from "./request";
