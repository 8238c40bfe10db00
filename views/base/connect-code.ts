/** Programs that print a few rows. They read the URL, with its password, from the environment. */
import { readableName } from "../../core/exports";
import type { ClientGuide, ClientId, SqlAccess } from "./connect-clients";
import { jdbcUrl, postgresUrl } from "./connect-urls";
import { shellWord } from "./snippets";

/** Returns undefined for tools that are not programmed. */
export function codeOf(id: ClientId, access: SqlAccess): ClientGuide | undefined {
  const sql = `select * from ${access.table} limit 5`;
  const text = JSON.stringify(sql);
  const url = postgresUrl(access);
  const inShell = (value: string, name = "DATABASE_URL") => [
    { id: "connect-env", label: "Environment", value: `export ${name}=${shellWord(value)}` },
  ];
  switch (id) {
    case "psql":
      return {
        secrets: [{ id: "connect-psql", label: "psql command", value: `psql ${shellWord(url)}` }],
        program: {
          file: "In psql",
          code: `\\dt${access.schema === "public" ? "" : ` ${readableName(access.schema)}.*`}
-- SQL only reads this copy: change the data in Airtable, or through the proxy.
${sql};`,
        },
      };
    case "url":
      return {
        secrets: [
          { id: "connect-url", label: "Connection URL", value: url },
          { id: "connect-psql", label: "psql command", value: `psql ${shellWord(url)}` },
          { id: "connect-dotenv", label: ".env", value: `DATABASE_URL="${url}"` },
        ],
      };
    case "postgres-js":
      return {
        install: "npm install postgres",
        secrets: inShell(url),
        program: {
          file: "rows.mjs",
          code: `import postgres from "postgres";

const text = (value) => value;
const sql = postgres(process.env.DATABASE_URL, {
  // Columns of times have no zone, and contain UTC. Dates are text, because a Date may be another day.
  connection: { TimeZone: "UTC" },
  types: {
    time: {
      to: 1114, from: [1114],
      serialize: (time) => time instanceof Date ? time.toISOString() : time,
      parse: (time) => new Date(time.replace(" ", "T") + "Z"),
    },
    day: { to: 1082, from: [1082], serialize: text, parse: text },
  },
});
const rows = await sql\`${sql.replaceAll(/[`\\$]/g, "\\$&")}\`;
console.table(rows);
await sql.end();`,
        },
      };
    case "pg":
      return {
        install: "npm install pg",
        // Without the parameter, this driver takes "require" for "verify-full".
        secrets: inShell(postgresUrl(access, access.sslMode === null ? {} : { uselibpqcompat: "true" })),
        program: {
          file: "rows.mjs",
          code: `import pg from "pg";

// Columns of times have no zone, and contain UTC. Dates are text, because a Date may be another day.
pg.types.setTypeParser(1114, (time) => new Date(time.replace(" ", "T") + "Z"));
pg.types.setTypeParser(1082, (day) => day);
pg.defaults.parseInputDatesAsUTC = true;

const client = new pg.Client({ connectionString: process.env.DATABASE_URL, options: "-c TimeZone=UTC" });
await client.connect();
const { rows } = await client.query(${text});
console.table(rows);
await client.end();`,
        },
      };
    case "python":
      return {
        install: 'pip install "psycopg[binary]"',
        secrets: inShell(url),
        program: {
          file: "rows.py",
          code: `import os
from datetime import timezone
import psycopg
from psycopg.types.datetime import TimestampLoader

class UtcLoader(TimestampLoader):
    """Columns of times have no zone, and contain UTC."""
    def load(self, data):
        return super().load(data).replace(tzinfo=timezone.utc)

psycopg.adapters.register_loader("timestamp", UtcLoader)

with psycopg.connect(os.environ["DATABASE_URL"], options="-c TimeZone=UTC") as connection:
    for row in connection.execute(${text}):
        print(row)`,
        },
      };
    case "go":
      return {
        install: "go get github.com/jackc/pgx/v5",
        secrets: inShell(url),
        program: {
          file: "main.go",
          code: `package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/jackc/pgx/v5"
)

func main() {
	ctx := context.Background()
	// Columns of times have no zone, and contain UTC. Compare them with t.UTC().
	connection, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close(ctx)
	rows, err := connection.Query(ctx, ${text})
	if err != nil {
		log.Fatal(err)
	}
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(values...)
	}
}`,
        },
      };
    case "ruby":
      return {
        install: "gem install pg",
        secrets: inShell(url),
        program: {
          file: "rows.rb",
          code: `require "pg"

connection = PG.connect(ENV.fetch("DATABASE_URL"))
# Columns of times have no zone, and contain UTC: read and compare them as such.
connection.exec("set timezone to 'UTC'")
registry = PG::BasicTypeRegistry.new.register_default_types
registry.register_type(0, "timestamp", PG::TextEncoder::TimestampUtc, PG::TextDecoder::TimestampUtc)
connection.type_map_for_results = PG::BasicTypeMapForResults.new(connection, registry: registry)
connection.type_map_for_queries = PG::BasicTypeMapForQueries.new(connection)
connection.exec(${text.replaceAll("#", "\\#")}).each { |row| puts row }`,
        },
      };
    case "jdbc":
      return {
        secrets: inShell(jdbcUrl(access), "JDBC_URL"),
        program: {
          file: "Rows.java",
          code: `import java.sql.DriverManager;
import java.util.TimeZone;

public class Rows {
    public static void main(String[] args) throws Exception {
        // Columns of times have no zone, and contain UTC; the driver uses the zone of the program.
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
        try (var connection = DriverManager.getConnection(System.getenv("JDBC_URL"));
             var rows = connection.createStatement().executeQuery(${text})) {
            while (rows.next()) System.out.println(rows.getString("id"));
        }
    }
}`,
        },
        steps: ["Add the driver: org.postgresql:postgresql (Maven), or postgresql.jar on the class path."],
      };
    default:
      return undefined;
  }
}
