/** Checks whether a server can hold the control plane, and how it is reached. */
import type { ServerUrl } from "../../external";
import { kindOfHost } from "../../net";
import { connectControl, ownServer, probe, type SessionOptions } from "../../postgres";
import {
  checkServer,
  type DatabaseCheck,
  describeServer,
  poolerProblem,
  settingsProblem,
} from "../placement";
import { OPEN_DATABASE, type OpenDatabase, openProblem } from "./close-control";

/** Earlier versions do not support `nulls not distinct`. */
const FIRST_MAJOR_VERSION = 15;

interface ControlReport {
  /** One line about the server and the connection to it. */
  summary: string;
  checks: DatabaseCheck[];
}

/** @throws the errors of the connection */
export async function inspectControl(databaseUrl: string): Promise<ControlReport> {
  const url = ownServer(databaseUrl);
  const kind = await kindOfHost(url.host);
  try {
    return await probe(databaseUrl, connect, async (sql, report) => {
      const checks = checkServer(report, { url, kind, isOwn: true, firstMajorVersion: FIRST_MAJOR_VERSION });
      const settings = await settingsProblem(sql);
      if (settings) checks.push(settings);
      const [database] = await sql.unsafe<OpenDatabase[]>(OPEN_DATABASE);
      if (database!.isOpen) checks.push(openProblem(database!));
      return { summary: describeServer(report), checks };
    });
  } catch (error) {
    const pooler = poolerProblem(error, url);
    if (pooler) return { summary: pooler.message, checks: [pooler] };
    throw error;
  }
}

function connect(url: ServerUrl, session: SessionOptions) {
  return connectControl(url as string, { max: 1, ...session });
}
