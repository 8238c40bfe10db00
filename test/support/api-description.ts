/** A console without a database, the management API's routes and their description. */
import { randomBytes } from "node:crypto";
import pino from "pino";
import { Registry } from "prom-client";
import { consoleApp } from "../../apps/console/app";
import { ApiDescription, type ApiRoute } from "../../apps/console/openapi";
import { readConfig } from "../../core/config";
import { connectControl } from "../../core/postgres";
import { createSecretBox } from "../../core/secrets";

const secretKey = randomBytes(32).toString("base64");
/** Never connected to. */
const DATABASE_URL = "postgres://127.0.0.1:1/none";

const config = readConfig({ DATABASE_URL, SECRET_KEY: secretKey, LOG_LEVEL: "silent" });

/** A console for pages and routes that need no database. */
export const publicConsole = consoleApp({
  config,
  db: connectControl(DATABASE_URL, { max: 1 }),
  log: pino({ level: "silent" }),
  secrets: createSecretBox([secretKey]),
  metrics: new Registry(),
  queue: { requestSync: async () => {} },
  platforms: [],
});

const consoleRoutes = publicConsole.routes as ApiRoute[];
export const apiRoutes = consoleRoutes.filter(({ path }) => path.startsWith("/api/"));

const description = new ApiDescription(config.consoleUrl);
description.describe(consoleRoutes);
export const apiDocument = description.document;
