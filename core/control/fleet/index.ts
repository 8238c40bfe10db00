/** Processes, workers, and metrics of the whole fleet. */
export { fleetMetrics } from "./fleet-metrics";
export { type OutboxBase, outboxesOf, releaseOutbox } from "./outboxes";
export { removeProcess, runningVersions, startReports } from "./processes";
export {
  basesBuilding,
  type FleetState,
  fleetState,
  listWorkers,
  reportWorker,
  type WorkerStatus,
} from "./workers";
