/** Reads that a replica answers in the source's own JSON. */
export { answerRead, LOST_OFFSET, type ReadAnswer } from "./answer-read";
export { isOurOffset } from "./offset";
export { parseRead, type ReadRequest } from "./request";
