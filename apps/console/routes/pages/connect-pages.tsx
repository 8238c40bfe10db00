/** The last steps of connecting a base: its connection details for each program, its SQL users, and first queries. */
import { Elysia } from "elysia";
import { type AskedWrites, createSqlUserOf } from "../../../../core/control/bases";
import {
  type Credentials,
  type Database,
  getDatabase,
  getSqlUser,
  hiddenCredentials,
  listSqlUsers,
  setReadingUrl,
  showCredentials,
  showSqlUserCredentials,
} from "../../../../core/control/placement";
import { sampleQueries } from "../../../../core/exports";
import { Connect } from "../../../../views/base/connect";
import { isClient } from "../../../../views/base/connect-clients";
import { FirstQueries } from "../../../../views/base/ready";
import { SqlUsers } from "../../../../views/base/sql-users";
import { Card, DialogContent } from "../../../../views/components";
import { isHtmx } from "../../../../views/render";
import { type BaseCall, onOneBase } from "../../base-page";
import { type FormError, formResultOf } from "../../form-error";
import { type ConsoleContext, finish, formText } from "../../page-kit";
import { cachedShape } from "../../shape-cache";
import { offeredSslMode } from "../../tls-offers";

/** Of the sample queries, those that a new base shows. */
const FIRST_QUERIES = 3;

export function connectPages(ctx: ConsoleContext) {
  const { db } = ctx;

  /**
   * The page, or its dialog: with the credentials of the database's own role, or of the SQL user `query.user`. The password
   * is in it, and the look is recorded, only if `isShown`.
   */
  async function show(
    { request, page, base, basePage, by }: BaseCall,
    query: { with?: string | undefined; user?: string | undefined },
    form: { name: string; writes?: string; error?: FormError; urlError?: FormError } = { name: "" },
    isShown = false,
  ) {
    const database = await getDatabase(db, base.database.id);
    const isHosted = database.clusterId !== null;
    const user = query.user === undefined ? undefined : await getSqlUser(db, database.id, query.user);
    const reveal = () => (user ? showSqlUserCredentials(by, database, user) : showCredentials(by, database));
    const credentials = await (isShown ? reveal() : hiddenCredentials(ctx, database, user));
    const connect = (
      <Connect
        base={base}
        access={await accessOf(database, credentials)}
        client={isClient(query.with) ? query.with : "url"}
        isShown={isShown}
        location={database.location}
        isHosted={isHosted}
        isWritable={database.isWritable}
        sqlUser={user}
      />
    );
    const title = user ? `Connect as ${user.name}` : "Connect";
    if (isHtmx(request)) return page({ title }, <DialogContent title={title}>{connect}</DialogContent>);
    return basePage(
      { place: "connect", title, status: (form.error ?? form.urlError)?.status },
      <>
        <Card id="connect" title={title}>
          {connect}
        </Card>
        <SqlUsers
          base={base}
          users={isHosted ? await listSqlUsers(db, database.id) : undefined}
          databaseName={database.name}
          now={new Date()}
          name={form.name}
          writes={form.writes ?? ""}
          error={form.error?.message}
          readingUrl={{ isSet: database.hasReader, error: form.urlError?.message }}
        />
      </>,
    );
  }

  return new Elysia({ name: "connect-pages", detail: { hide: true } })
    .use(onOneBase(ctx))
    .get("/bases/:id/connect", (call) => show(call, call.query))
    .post("/bases/:id/connect", async (call) => {
      const { body } = call;
      const chosen = { with: formText(body, "with"), user: formText(body, "user") || undefined };
      return show(call, chosen, undefined, true);
    })
    .post("/bases/:id/sql-users", async (call) => {
      const { request, base, by, body } = call;
      const [name, writes] = [formText(body, "name"), formText(body, "writes")];
      const { failed: error, value: user } = await formResultOf(() =>
        createSqlUserOf(by, base, name, writtenTables(writes)),
      );
      if (error) return show(call, {}, { name, writes, error });
      const path = `/bases/${base.id}/connect?user=${user.id}`;
      return finish(request, path, `SQL user “${user.name}” created. Show its password to connect with it.`);
    })
    .post("/bases/:id/connect/reading-url", async (call) => {
      const { request, base, by, body } = call;
      const database = await getDatabase(db, base.database.id);
      const { failed: urlError } = await formResultOf(() =>
        setReadingUrl(by, database, formText(body, "url")),
      );
      if (urlError) return show(call, {}, { name: "", urlError });
      return finish(
        request,
        `/bases/${base.id}/connect`,
        "Reading URL saved. Viewers can read this base now.",
      );
    })
    .get("/bases/:id/ready", async ({ request, page, base, basePage }) => {
      const { tables } = await cachedShape(ctx, base);
      const counts = new Map(base.tables.map(({ name, records }) => [name, records]));
      const queries = sampleQueries(base.database.schema, tables, counts).slice(0, FIRST_QUERIES);
      const first = <FirstQueries base={base} queries={queries} />;
      const title = "First queries";
      return isHtmx(request) ? page({ title }, first) : basePage({ place: "overview", title }, first);
    });
}

/** A customer's URL says itself how to encrypt; of a server of ours, it is asked. */
async function accessOf(database: Database, credentials: Credentials) {
  const { host, port, user, password, url } = credentials;
  const parameters = Object.fromEntries(new URL(url).searchParams);
  const { sslmode = null, ...others } = parameters;
  const sslMode = sslmode ?? (database.clusterId === null ? null : await offeredSslMode(host, port));
  return { host, port, database: credentials.database, user, password, sslMode, parameters: others };
}

/** The tables that were typed, separated by commas; undefined: the user writes nothing. */
function writtenTables(text: string): AskedWrites | undefined {
  const tables = text.split(",").flatMap((name) => name.trim() || []);
  return tables.length > 0 ? { tables } : undefined;
}
