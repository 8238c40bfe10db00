/** What the service's own processes answer: health, metrics, errors. */
export { healthRoutes } from "./health";
export { listenForMetrics } from "./metrics";
export { answerError, type ErrorForCaller, explainError } from "./on-error";
