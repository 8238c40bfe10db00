/** What to enter where in tools with forms. The password has a field of its own on the page. */
import type { ClientGuide, ClientId, SqlAccess } from "./connect-clients";
import { isEncrypted, postgresUrl } from "./connect-urls";

export function toolOf(id: ClientId, access: SqlAccess): ClientGuide {
  const { host, port, database, user, schema } = access;
  const encrypted = isEncrypted(access);
  const login: [string, string][] = [
    ["Database", database],
    ["Username", user],
  ];
  const server: [string, string][] = [["Host", host], ["Port", String(port)], ...login];
  switch (id) {
    case "metabase":
      return {
        steps: [
          "Open Admin settings, Databases, Add database, and choose PostgreSQL.",
          encrypted
            ? "Turn on “Use a secure connection (SSL)” with the mode “require”."
            : "Leave “Use a secure connection (SSL)” off.",
          "Under “Schemas”, select “Only these…” and enter the schema.",
        ],
        fields: [...server, ["Schema", schema]],
      };
    case "grafana":
      return {
        steps: [
          "Open Connections, Data sources, Add data source, and choose PostgreSQL.",
          "Use “created_time” as the time column of your panels.",
        ],
        fields: [
          ["Host URL", `${host.includes(":") ? `[${host}]` : host}:${port}`],
          ["Database name", database],
          ["Username", user],
          ["TLS/SSL mode", encrypted ? "require" : "disable"],
        ],
      };
    case "tableau":
      return {
        steps: [
          "Under Connect, To a Server, choose PostgreSQL.",
          encrypted ? "Select “Require SSL”." : "Leave “Require SSL” off.",
          `Then choose the schema ${schema}.`,
        ],
        fields: server,
      };
    case "power-bi":
      return {
        steps: [
          "Choose Get data, PostgreSQL database. “Import” is quick; “DirectQuery” is always current.",
          "Sign in with the tab “Database”, the user below and the password.",
          encrypted
            ? "Power BI checks the server's certificate. If it is not from a known authority, install it in Windows first."
            : "Clear “Encrypt connections” in the settings of the data source.",
        ],
        fields: [
          ["Server", `${host}:${port}`],
          ["Database", database],
          ["User name", user],
        ],
      };
    case "retool":
      return {
        steps: [
          "Open Resources, Create new, Resource, and choose Postgres.",
          encrypted ? "Turn on “Connect using SSL/TLS”." : "Leave “Connect using SSL/TLS” off.",
          "To write, call the base's API through the proxy: this user can only read.",
        ],
        fields: server,
      };
    case "superset":
      return {
        steps: [
          "Open Settings, Database Connections, + Database, and choose PostgreSQL, then “Connect this database with a SQLAlchemy URI”.",
        ],
        secrets: [
          {
            id: "connect-sqlalchemy",
            label: "SQLAlchemy URI",
            value: postgresUrl(access, {}, "postgresql"),
          },
        ],
      };
    default:
      return {
        steps: [
          "Install the driver psqlODBC, with the same number of bits as Excel.",
          "In Excel choose Data, Get Data, From Other Sources, From ODBC, Advanced options, and paste the connection string.",
        ],
        secrets: [{ id: "connect-odbc", label: "Connection string", value: odbc(access) }],
      };
  }
}

/** The name of the driver on Windows; on Linux it is `PostgreSQL Unicode`, too. */
function odbc({ host, port, database, user, password, sslMode }: SqlAccess): string {
  const parts = [
    "Driver={PostgreSQL Unicode}",
    `Server=${host}`,
    `Port=${port}`,
    `Database=${database}`,
    `Uid=${user}`,
    `Pwd=${/[;{}=]/.test(password) ? `{${password.replaceAll("}", "}}")}}` : password}`,
    ...(sslMode === null ? [] : [`SSLmode=${sslMode}`]),
  ];
  return `${parts.join(";")};`;
}
