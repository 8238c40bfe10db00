/** Reads that a replica answers in the source's own JSON. */
export { answerRead, type ReadAnswer } from "./answer-read";
export { isOurOffset } from "./offset";
export { parseRead, type ReadRequest } from "./request";
