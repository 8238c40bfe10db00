/** The service's own answers: health, metrics, errors. */
export { healthAnswers } from "./health";
export { listenForMetrics } from "./metrics";
export { answerError, type ErrorForCaller, explainError } from "./on-error";
