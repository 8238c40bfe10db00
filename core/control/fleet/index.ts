/** Processes, workers, and metrics of the whole fleet. */
export { fleetMetrics } from "./fleet-metrics";
export { runningVersions, startReports } from "./processes";
export {
  basesBuilding,
  type FleetState,
  fleetState,
  listWorkers,
  removeWorker,
  reportWorker,
  type WorkerStatus,
} from "./workers";
