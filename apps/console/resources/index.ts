/** The resources of the console and of the management API, in the order of the API's reference. */
import type { AnyResource } from "../resource-kit/resource";
import { agentsResource } from "./agents";
import { alertsResource } from "./alerts";
import { auditResource } from "./audit";
import { baseExports } from "./base-exports";
import { baseReports } from "./base-reports";
import { baseSettings } from "./base-settings";
import { baseDeletion, baseResource, basesResource } from "./bases";
import { changeSetsResource } from "./change-sets";
import { connectionsResource } from "./connections";
import { membersResource } from "./members";
import { proposalsResource } from "./proposals";
import { requestsResource } from "./requests";
import { sourcesResource } from "./sources";
import { credentialsResource, sqlUsersResource } from "./sql-users";
import { sqlWritesResource } from "./sql-writes";
import { tokensResource } from "./tokens";
import { workspacesResource } from "./workspaces";

export const resources: AnyResource[] = [
  sourcesResource,
  basesResource,
  baseResource,
  baseSettings,
  baseDeletion,
  baseReports,
  workspacesResource,
  changeSetsResource,
  baseExports,
  credentialsResource,
  sqlUsersResource,
  sqlWritesResource,
  agentsResource,
  proposalsResource,
  connectionsResource,
  requestsResource,
  auditResource,
  membersResource,
  alertsResource,
  tokensResource,
];
