/** The last steps of connecting a base: its connection details for each program, and queries to start with. */
import { Elysia } from "elysia";
import { actorOf } from "../../../../core/control/accounts";
import { getBase } from "../../../../core/control/bases";
import {
  type Credentials,
  type Database,
  getDatabase,
  showCredentials,
} from "../../../../core/control/placement";
import { sampleQueries } from "../../../../core/exports";
import { Connect } from "../../../../views/base/connect";
import { isClient } from "../../../../views/base/connect-clients";
import { BaseFrame } from "../../../../views/base/frame";
import { FirstQueries } from "../../../../views/base/ready";
import { Card, DialogContent } from "../../../../views/components";
import { isHtmx } from "../../../../views/render";
import { answer, type ConsoleContext, signedIn } from "../../page-kit";
import { cachedShape } from "../../shape-cache";
import { TlsOffers } from "../../tls-offers";

/** Of the sample queries, those that a new base shows. */
const FIRST_QUERIES = 3;

export function connectPages(ctx: ConsoleContext) {
  const { db } = ctx;
  const offers = new TlsOffers();

  return new Elysia({ name: "connect-pages", detail: { hide: true } })
    .use(signedIn(ctx))
    .get("/bases/:id/connect", async ({ request, currentUser, account, params, query }) => {
      const base = await getBase(db, params.id, account.id);
      const database = await getDatabase(db, base.database.id);
      const credentials = await showCredentials({ ...ctx, actor: actorOf(currentUser) }, database);
      const connect = (
        <Connect
          base={base}
          access={await accessOf(offers, database, credentials)}
          client={isClient(query.with) ? query.with : "url"}
          region={database.region}
          isHosted={database.clusterId !== null}
          isWritable={database.isWritable}
        />
      );
      const view = isHtmx(request) ? (
        <DialogContent title="Connect">{connect}</DialogContent>
      ) : (
        <BaseFrame base={base} place="connect">
          <Card id="connect" title="Connect">
            {connect}
          </Card>
        </BaseFrame>
      );
      return answer(request, { title: `Connect · ${base.name}`, currentUser, active: "bases", base }, view);
    })
    .get("/bases/:id/ready", async ({ request, currentUser, account, params }) => {
      const base = await getBase(db, params.id, account.id);
      const { tables } = await cachedShape(ctx, base);
      const counts = new Map(base.tables.map(({ name, records }) => [name, records]));
      const queries = sampleQueries(base.database.schema, tables, counts).slice(0, FIRST_QUERIES);
      const first = <FirstQueries base={base} queries={queries} />;
      const view = isHtmx(request) ? (
        first
      ) : (
        <BaseFrame base={base} place="overview">
          {first}
        </BaseFrame>
      );
      return answer(
        request,
        { title: `First queries · ${base.name}`, currentUser, active: "bases", base },
        view,
      );
    });
}

/** A customer's URL says itself how to encrypt; of a server of ours, it is asked. */
async function accessOf(offers: TlsOffers, database: Database, credentials: Credentials) {
  const { host, port, user, password, url } = credentials;
  const parameters = Object.fromEntries(new URL(url).searchParams);
  const { sslmode = null, ...others } = parameters;
  const sslMode = sslmode ?? (database.clusterId === null ? null : await offers.sslMode(host, port));
  return { host, port, database: credentials.database, user, password, sslMode, parameters: others };
}
