/**
 * Identifies a server's provider by the roles, settings and functions that providers create, then by the host's name.
 */

export interface Traces {
  /** Those of `TRACES.roles` that exist. */
  roles: string[];
  /** Prefixes of the server's setting names, such as `rds` of `rds.extensions`. */
  prefixes: string[];
  hasAurora: boolean;
}

interface Platform {
  name: string;
  roles?: string[];
  prefixes?: string[];
  host?: RegExp;
}

/** The first match wins: Aurora is RDS too, and DigitalOcean's servers are Aiven's. */
const PLATFORMS: Platform[] = [
  { name: "Supabase", roles: ["supabase_admin"], prefixes: ["supautils"], host: /\.supabase\.(?:co|com)$/ },
  { name: "Databricks Lakebase", roles: ["databricks_superuser"], host: /\.database\.[^/]*databricks\.com$/ },
  { name: "Neon", roles: ["neon_superuser"], prefixes: ["neon"], host: /\.neon\.(?:tech|build)$/ },
  {
    name: "Amazon RDS",
    roles: ["rds_superuser"],
    prefixes: ["rds"],
    host: /\.rds\.amazonaws\.com(?:\.cn)?$/,
  },
  { name: "AlloyDB", roles: ["alloydbsuperuser"], prefixes: ["alloydb"] },
  { name: "Cloud SQL", roles: ["cloudsqlsuperuser"], prefixes: ["cloudsql"] },
  {
    name: "Azure Database",
    roles: ["azure_pg_admin"],
    prefixes: ["azure"],
    host: /\.postgres\.database\.azure\.com$/,
  },
  { name: "DigitalOcean", roles: ["doadmin"], host: /\.db\.ondigitalocean\.com$/ },
  { name: "Aiven", roles: ["avnadmin"], prefixes: ["aiven"], host: /\.aivencloud\.com$/ },
  { name: "Crunchy Bridge", roles: ["crunchy_superuser"], host: /\.postgresbridge\.com$/ },
  { name: "Crunchy Postgres for Kubernetes", roles: ["_crunchyrepl"] },
  { name: "CloudNativePG", roles: ["streaming_replica"], prefixes: ["cnpg"] },
];

export const TRACES = { roles: PLATFORMS.flatMap(({ roles = [] }) => roles) };

/** @returns the provider or operator; undefined for an unknown one */
export function platformOf({ roles, prefixes, hasAurora }: Traces, host: string): string | undefined {
  if (hasAurora) return "Amazon Aurora";
  const left = PLATFORMS.find(
    (one) =>
      one.roles?.some((role) => roles.includes(role)) ||
      one.prefixes?.some((prefix) => prefixes.includes(prefix)),
  );
  return (left ?? PLATFORMS.find((one) => one.host?.test(host)))?.name;
}
