/** The resources of the console and of the management API. */
import type { AnyResource } from "../resource-kit/resource";
import { agentsResource } from "./agents";
import { alertsResource } from "./alerts";
import { changeSetsResource } from "./change-sets";
import { connectionsResource } from "./connections";
import { proposalsResource } from "./proposals";
import { requestsResource } from "./requests";
import { tokensResource } from "./tokens";
import { workspacesResource } from "./workspaces";

export const resources: AnyResource[] = [
  agentsResource,
  alertsResource,
  changeSetsResource,
  proposalsResource,
  connectionsResource,
  requestsResource,
  tokensResource,
  workspacesResource,
];
