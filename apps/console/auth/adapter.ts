/** Runs better-auth's own Postgres queries over the pool that the process already has. */
import { kyselyAdapter } from "@better-auth/kysely-adapter";
import type { BetterAuthOptions } from "better-auth/types";
import {
  type CompiledQuery,
  type DatabaseConnection,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
} from "kysely";
import type { ISql } from "postgres";
import type { Db } from "../../../core/context";

type Sql = ISql<Record<string, never>>;

export function controlAdapter(db: Db) {
  return (options: BetterAuthOptions) => {
    const adapterOn = (sql: unknown) => kyselyAdapter(kyselyOn(sql as Sql), { type: "postgres" })(options);
    type Adapter = ReturnType<typeof adapterOn>;
    const transaction = <R>(run: (adapter: Adapter) => Promise<R>) =>
      db.begin((tx) => run(adapterOn(tx))) as Promise<R>;
    return { ...adapterOn(db), transaction };
  };
}

function kyselyOn(sql: Sql): Kysely<Record<string, never>> {
  return new Kysely({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new PoolDriver(sql),
      createIntrospector: (kysely) => new PostgresIntrospector(kysely),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  });
}

/** The pool, or one of its transactions, as Kysely's only connection: it selects a connection for each query itself. */
class PoolDriver extends DummyDriver {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    super();
    this.#sql = sql;
  }

  override async acquireConnection(): Promise<DatabaseConnection> {
    return {
      executeQuery: async <R>({ sql, parameters }: CompiledQuery) => {
        const rows = await this.#sql.unsafe(sql, parameters as string[], { prepare: true });
        return { rows: rows as unknown as R[], numAffectedRows: BigInt(rows.count ?? 0) };
      },
      streamQuery() {
        throw new Error("better-auth asked for a stream of rows");
      },
    };
  }
}
