/** Can a server be a cluster? It must take connections, and let its admin make databases and roles. */
import postgres from "postgres";
import { CERTIFICATE_CODES, isConnectionError } from "./db";

const CONNECT_TIMEOUT_SECONDS = 5;

export interface Trouble {
  /** What is wrong. */
  message: string;
  /** What to do about it. */
  remedy: string;
}

/** What keeps the server at `adminUrl` from being a cluster; nothing when all is well. */
export async function clusterTroubles(adminUrl: string): Promise<Trouble[]> {
  const sql = postgres(adminUrl, { max: 1, connect_timeout: CONNECT_TIMEOUT_SECONDS, onnotice: () => {} });
  try {
    const [facts] = await sql<Facts[]>`
      select current_user as role, rolsuper as is_super, rolcreatedb or rolsuper as may_create_databases,
        rolcreaterole or rolsuper as may_create_roles
      from pg_roles where rolname = current_user`;
    return facts ? troublesOf(facts) : [];
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const isUntrusted = CERTIFICATE_CODES.includes(String((error as { code?: unknown }).code));
    const remedy = isUntrusted
      ? "Correct the host, or name a file with the server's authority in NODE_EXTRA_CA_CERTS"
      : isConnectionError(error)
        ? "Start the server, or correct the host, port, user and password of its admin URL"
        : "Look into the server's log";
    return [{ message: `Not usable: ${reason}`, remedy }];
  } finally {
    await sql.end({ timeout: 1 });
  }
}

function troublesOf(facts: Facts): Trouble[] {
  const troubles: Trouble[] = [];
  if (!facts.may_create_databases) {
    troubles.push({
      message: `The role ${facts.role} may not create databases`,
      remedy: `alter role ${facts.role} createdb`,
    });
  }
  if (!facts.may_create_roles) {
    troubles.push({
      message: `The role ${facts.role} may not create roles`,
      remedy: `alter role ${facts.role} createrole`,
    });
  }
  return troubles;
}

interface Facts {
  role: string;
  is_super: boolean;
  may_create_databases: boolean;
  may_create_roles: boolean;
}
