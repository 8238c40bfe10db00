/** Detects poolers in transaction mode by their addresses, and suggests what to connect to instead. */

import { TransactionPooled } from "./errors";

interface Provider {
  name: string;
  /** Matches the host's name. */
  host: RegExp;
  /** The provider's port for transaction mode; absent: any. */
  port?: number;
  /** Does the address alone determine the mode? */
  isCertain: boolean;
  remedy: (host: string) => string;
}

const PROVIDERS: Provider[] = [
  {
    name: "Supabase's pooler",
    host: /\.pooler\.supabase\.com$/,
    port: 6543,
    isCertain: true,
    remedy: (host) => `Use the session pooler, which is ${host} on port 5432 with the same user`,
  },
  {
    name: "Supabase's dedicated pooler",
    host: /^db\.[a-z0-9]+\.supabase\.co$/,
    port: 6543,
    isCertain: true,
    remedy: (host) =>
      `Use the server itself, ${host} on port 5432, or, if only IPv4 is available, the session pooler (\`Connect\`, \`Session pooler\`)`,
  },
  {
    name: "Neon's pooler",
    host: /^[^.]+-pooler\..+\.neon\.(?:tech|build)$/,
    isCertain: true,
    remedy: (host) => `Use the server itself, ${host.replace("-pooler.", ".")}`,
  },
  {
    name: "Azure's PgBouncer",
    host: /\.postgres\.database\.azure\.com$/,
    port: 6432,
    isCertain: false,
    remedy: (host) =>
      `Use the server itself, ${host} on port 5432, or set \`pgbouncer.pool_mode\` to \`session\``,
  },
  {
    name: "DigitalOcean's connection pool",
    host: /\.db\.ondigitalocean\.com$/,
    isCertain: false,
    remedy: (host) => `Use ${host} on port 25060 with the database's own name, or a pool in session mode`,
  },
  {
    name: "Aiven's connection pool",
    host: /\.aivencloud\.com$/,
    isCertain: false,
    remedy: () => "Use the service URI, or a pool in session mode",
  },
  {
    name: "Crunchy Bridge's PgBouncer",
    host: /\.postgresbridge\.com$/,
    isCertain: false,
    remedy: (host) => `Use the server itself, ${host} on port 5432`,
  },
  {
    name: "RDS Proxy",
    host: /\.proxy-[^.]+\.[^.]+\.rds\.amazonaws\.com(?:\.cn)?$/,
    isCertain: false,
    remedy: () => "Use the endpoint of the cluster or of the instance",
  },
];

interface Address {
  host: string;
  port: number;
}

/** Returns the pooler in transaction mode that is known to be at this address. */
export function knownTransactionPooler({ host, port }: Address): string | undefined {
  return PROVIDERS.find((one) => one.isCertain && isAt(one, host, port))?.name;
}

/** @throws TransactionPooled if the address is that of a known pooler in transaction mode */
export function refuseKnownPooler(address: Address): void {
  if (knownTransactionPooler(address) !== undefined) throw new TransactionPooled(sessionRemedy(address));
}

/** Returns what to use instead of a pooler in transaction mode at this address, as a sentence without a full stop. */
export function sessionRemedy({ host, port }: Address): string {
  const provider = PROVIDERS.find((one) => isAt(one, host, port));
  return (
    provider?.remedy(host) ??
    "Set `pool_mode = session` in PgBouncer for this database, or use the URL of the server itself"
  );
}

function isAt(provider: Provider, host: string, port: number): boolean {
  return provider.host.test(host) && (provider.port === undefined || provider.port === port);
}
