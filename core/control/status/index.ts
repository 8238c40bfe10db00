/** Bases for display: indicator, list, JSON. */

export { baseJson, baseJsons } from "./base-json";
export { type BaseSummary, listBaseSummaries, selectBaseSummaries } from "./base-list";
export { type Indicator, indicatorOf, isLive, median } from "./indicator";
export { type BaseStatus, type StatusFacts, statusOf } from "./status";
export { type Remedy, statusOfError } from "./status-words";
export { atRate, LEAST_MS, type TimeRange, timeLeft, timeOfCalls } from "./time-left";
