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
          code: `\\dt${access.schema === "public" ? "" : ` ${readableName(access.schema)}.*`}\n${sql};`,
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

const sql = postgres(process.env.DATABASE_URL);
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

const client = new pg.Client({ connectionString: process.env.DATABASE_URL });
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
import psycopg

with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
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
connection.exec(${text.replaceAll("#", "\\#")}).each { |row| puts row }`,
        },
      };
    case "jdbc":
      return {
        secrets: inShell(jdbcUrl(access), "JDBC_URL"),
        program: {
          file: "Rows.java",
          code: `import java.sql.DriverManager;

public class Rows {
    public static void main(String[] args) throws Exception {
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
