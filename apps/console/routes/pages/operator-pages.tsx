/** The operator's console. For accounts that are not operators, these pages do not exist. */

import { Elysia } from "elysia";
import { unhealthyBases } from "../../../../core/alerts";
import type { Actor } from "../../../../core/context";
import { type CurrentUser, listAccounts } from "../../../../core/control/accounts";
import { listRuns } from "../../../../core/control/bases";
import { fleetState, listWorkers } from "../../../../core/control/fleet";
import { fleetHistory } from "../../../../core/control/history";
import { quarantine } from "../../../../core/control/jobs";
import {
  approveRequest,
  denyRequest,
  drainCluster,
  listClusters,
  listRequests,
  listSqlUsers,
} from "../../../../core/control/placement";
import { addCheckedCluster } from "../../../../core/control/setup";
import { indicatorOf, selectBaseSummaries } from "../../../../core/control/status";
import { BasetideError, httpStatus, isBasetideError } from "../../../../core/errors";
import { queueDepth } from "../../../../core/queue";
import { Accounts } from "../../../../views/operator/accounts";
import { OperatorBase } from "../../../../views/operator/base";
import { Clusters, type NewClusterForm } from "../../../../views/operator/clusters";
import { Fleet } from "../../../../views/operator/fleet";
import { FleetCharts } from "../../../../views/operator/fleet-charts";
import { AdminFrame } from "../../../../views/operator/frame";
import { RequestAdmin } from "../../../../views/operator/request-admin";
import { isHtmx } from "../../../../views/render";
import { answer, type ConsoleContext, finish, formSecret, formText, signedIn } from "../../page-kit";

const decisions: Record<string, string> = {
  approve: "Approved.",
  deny: "Denied.",
};

/** Syncs that a base's page lists. */
const RUNS = 30;

export function operatorPages(ctx: ConsoleContext) {
  const { db } = ctx;
  const page = (currentUser: Parameters<typeof answer>[1]["currentUser"]) =>
    ({ title: "Operator console", currentUser, active: "operator" }) as const;

  return new Elysia({ name: "operator-pages", prefix: "/operator", detail: { hide: true } })
    .use(signedIn(ctx))
    .onBeforeHandle(({ account }) => {
      if (!account.isOperator) throw new BasetideError("not_found", "This page does not exist");
    })
    .get("", async ({ request, currentUser }) => {
      const now = new Date();
      const [workers, state, queue, open, unhealthy, quarantined, hours] = await Promise.all([
        listWorkers(db),
        fleetState(db),
        queueDepth(db),
        listRequests(db, { state: "open" }),
        unhealthyBases(db, now),
        quarantine(db),
        isHtmx(request) ? [] : fleetHistory(db, now),
      ]);
      const fleet = (
        <Fleet {...{ workers, state, queue, unhealthy, quarantined, now }} openRequests={open.length} />
      );
      return answer(
        request,
        page(currentUser),
        isHtmx(request) ? (
          fleet
        ) : (
          <AdminFrame place="fleet">
            {fleet}
            <FleetCharts hours={hours} now={now} />
          </AdminFrame>
        ),
      );
    })
    .get("/requests", async ({ request, currentUser }) => {
      const requests = await listRequests(db);
      return answer(
        request,
        page(currentUser),
        <AdminFrame place="requests">
          <RequestAdmin requests={requests} now={new Date()} />
        </AdminFrame>,
      );
    })
    .post("/requests/:id", async ({ request, currentUser, params, body }) => {
      const decision = formText(body, "decision");
      const decide = { approve: approveRequest, deny: denyRequest }[decision];
      if (!decide) throw new BasetideError("invalid_request", "Approve or deny");
      try {
        await decide({ ...ctx, actor: operator(currentUser) }, params.id, {
          by: currentUser.email,
          answer: formText(body, "answer"),
        });
      } catch (error) {
        if (!isBasetideError(error, "conflict")) throw error;
        return answer(
          request,
          { ...page(currentUser), status: httpStatus.conflict },
          <AdminFrame place="requests" error={error.message}>
            <RequestAdmin requests={await listRequests(db)} now={new Date()} />
          </AdminFrame>,
        );
      }
      return finish(request, "/operator/requests", decisions[decision]!);
    })
    .get("/clusters", async ({ request, currentUser }) =>
      answer(
        request,
        page(currentUser),
        <AdminFrame place="clusters">
          <Clusters clusters={await listClusters(db)} />
        </AdminFrame>,
      ),
    )
    .post("/clusters", async ({ request, currentUser, body }) => {
      const typed: NewClusterForm = {
        name: formText(body, "name"),
        region: formText(body, "region").toLowerCase(),
        publicHost: formText(body, "public_host"),
        publicPort: formText(body, "public_port"),
      };
      try {
        await add({ ...ctx, actor: operator(currentUser) }, typed, formSecret(body, "url").trim());
      } catch (error) {
        if (!isBasetideError(error)) throw error;
        return answer(
          request,
          { ...page(currentUser), status: httpStatus[error.code] },
          <AdminFrame place="clusters">
            <Clusters clusters={await listClusters(db)} typed={typed} error={error.message} />
          </AdminFrame>,
        );
      }
      return finish(request, "/operator/clusters", "Cluster added. It accepts new databases.");
    })
    .post("/clusters/drain", async ({ request, currentUser, body }) => {
      await drainCluster(db, formText(body, "name"), operator(currentUser));
      const text = "Cluster draining. It keeps its databases and gets no new ones.";
      return finish(request, "/operator/clusters", text);
    })
    .get("/bases/:id", async ({ request, currentUser, params }) => {
      const now = new Date();
      const [base] = await selectBaseSummaries(db, db`b.id = ${params.id}`);
      if (!base) throw new BasetideError("not_found", "There is no such base; it may have been deleted");
      const [owner] = await db<{ email: string; databaseId: string; isHosted: boolean }[]>`
        select a.email, d.id as "databaseId", d.cluster_id is not null as "isHosted"
        from bases as b join accounts as a on a.id = b.account_id join databases as d on d.id = b.database_id
        where b.id = ${base.id}`;
      if (!owner) throw new BasetideError("not_found", "There is no such base; it may have been deleted");
      const [runs, users] = await Promise.all([
        listRuns(db, base.id, RUNS),
        owner.isHosted ? listSqlUsers(db, owner.databaseId) : undefined,
      ]);
      const indicator = indicatorOf(base, now);
      return answer(
        request,
        page(currentUser),
        <AdminFrame place="fleet">
          <OperatorBase {...{ base, indicator, runs, users, now }} owner={owner.email} />
        </AdminFrame>,
      );
    })
    .get("/accounts", async ({ request, currentUser }) =>
      answer(
        request,
        page(currentUser),
        <AdminFrame place="accounts">
          <Accounts accounts={await listAccounts(db)} now={new Date()} />
        </AdminFrame>,
      ),
    );
}

function operator({ email }: CurrentUser): Actor {
  return { kind: "operator", name: email };
}

/** @throws BasetideError `invalid_request`, `conflict` with the problem of the server and the remedy */
async function add(ctx: ConsoleContext, form: NewClusterForm, adminUrl: string): Promise<void> {
  const { name, region, publicHost, publicPort } = form;
  if (name === "" || region === "")
    throw new BasetideError("invalid_request", "A cluster needs a name and a region");
  const port = publicPort === "" ? undefined : Number(publicPort);
  if (port !== undefined && !(Number.isInteger(port) && port >= 1 && port <= 65_535)) {
    throw new BasetideError("invalid_request", "A port must be a number from 1 to 65535");
  }
  const host = publicHost === "" ? undefined : publicHost;
  await addCheckedCluster(ctx, { name, region, adminUrl, publicHost: host, publicPort: port });
}
