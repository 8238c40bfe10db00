/** The resources of the console and of the management API. */
import type { AnyResource } from "../resource-kit/resource";
import { alertsResource } from "./alerts";
import { changeSetsResource } from "./change-sets";
import { connectionsResource } from "./connections";
import { requestsResource } from "./requests";
import { tokensResource } from "./tokens";
import { workspacesResource } from "./workspaces";

export const resources: AnyResource[] = [
  alertsResource,
  changeSetsResource,
  connectionsResource,
  requestsResource,
  tokensResource,
  workspacesResource,
];
