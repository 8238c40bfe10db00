/** The resources of the console and of the management API. */
import type { AnyResource } from "../resource-kit/resource";
import { alertsResource } from "./alerts";

export const resources: AnyResource[] = [alertsResource];
