/** The operator's console. For accounts that are not operators, these pages do not exist. */

import { Elysia } from "elysia";
import type { VNode } from "preact";
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
import { BasetideError } from "../../../../core/errors";
import { queueDepth } from "../../../../core/queue";
import { Accounts } from "../../../../views/operator/accounts";
import { OperatorBase } from "../../../../views/operator/base";
import { Clusters, type NewClusterForm } from "../../../../views/operator/clusters";
import { Fleet } from "../../../../views/operator/fleet";
import { FleetCharts } from "../../../../views/operator/fleet-charts";
import { AdminFrame } from "../../../../views/operator/frame";
import { RequestAdmin } from "../../../../views/operator/request-admin";
import { isHtmx } from "../../../../views/render";
import { type FormError, formResultOf } from "../../form-error";
import { type ConsoleContext, finish, formSecret, formText, type PageCall, signedIn } from "../../page-kit";

const decisions: Record<string, string> = {
  approve: "Approved.",
  deny: "Denied.",
};

/** Syncs that a base's page lists. */
const RUNS = 30;

export function operatorPages(ctx: ConsoleContext) {
  const { db } = ctx;
  const show = (
    { request, page }: PageCall,
    frame: Omit<Parameters<typeof AdminFrame>[0], "children">,
    view: VNode,
    status?: number,
  ) =>
    page(
      { title: "Operator console", active: "operator", status },
      isHtmx(request) ? view : <AdminFrame {...frame}>{view}</AdminFrame>,
    );
  const requestsPage = async (call: PageCall, failed?: FormError) => {
    const view = <RequestAdmin requests={await listRequests(db)} now={new Date()} />;
    return show(call, { place: "requests", error: failed?.message }, view, failed?.status);
  };
  const clustersPage = async (call: PageCall, typed?: NewClusterForm, failed?: FormError) => {
    const view = <Clusters clusters={await listClusters(db)} typed={typed} error={failed?.message} />;
    return show(call, { place: "clusters" }, view, failed?.status);
  };

  return new Elysia({ name: "operator-pages", prefix: "/operator", detail: { hide: true } })
    .use(signedIn(ctx))
    .onBeforeHandle(({ account }) => {
      if (!account.isOperator) throw new BasetideError("not_found", "This page does not exist");
    })
    .get("", async (call) => {
      const now = new Date();
      const isPart = isHtmx(call.request);
      const [workers, state, queue, open, unhealthy, quarantined, hours] = await Promise.all([
        listWorkers(db),
        fleetState(db),
        queueDepth(db),
        listRequests(db, { state: "open" }),
        unhealthyBases(db, now),
        quarantine(db),
        isPart ? [] : fleetHistory(db, now),
      ]);
      const fleet = (
        <Fleet {...{ workers, state, queue, unhealthy, quarantined, now }} openRequests={open.length} />
      );
      const view = isPart ? (
        fleet
      ) : (
        <>
          {fleet}
          <FleetCharts hours={hours} now={now} />
        </>
      );
      return show(call, { place: "fleet" }, view);
    })
    .get("/requests", (call) => requestsPage(call))
    .post("/requests/:id", async (call) => {
      const { request, currentUser, params, body } = call;
      const decision = formText(body, "decision");
      const decide = { approve: approveRequest, deny: denyRequest }[decision];
      if (!decide) throw new BasetideError("invalid_request", "Approve or deny");
      const by = { by: currentUser.email, answer: formText(body, "answer") };
      const { failed } = await formResultOf(() =>
        decide({ ...ctx, actor: operator(currentUser) }, params.id, by),
      );
      if (failed) return requestsPage(call, failed);
      return finish(request, "/operator/requests", decisions[decision]!);
    })
    .get("/clusters", (call) => clustersPage(call))
    .post("/clusters", async (call) => {
      const { request, currentUser, body } = call;
      const typed: NewClusterForm = {
        name: formText(body, "name"),
        region: formText(body, "region").toLowerCase(),
        publicHost: formText(body, "public_host"),
        publicPort: formText(body, "public_port"),
      };
      const url = formSecret(body, "url").trim();
      const { failed } = await formResultOf(() => add({ ...ctx, actor: operator(currentUser) }, typed, url));
      if (failed) return clustersPage(call, typed, failed);
      return finish(request, "/operator/clusters", "Cluster added. It accepts new databases.");
    })
    .post("/clusters/drain", async ({ request, currentUser, body }) => {
      await drainCluster(db, formText(body, "name"), operator(currentUser));
      const text = "Cluster draining. It keeps its databases and gets no new ones.";
      return finish(request, "/operator/clusters", text);
    })
    .get("/bases/:id", async (call) => {
      const now = new Date();
      const [base] = await selectBaseSummaries(db, db`b.id = ${call.params.id}`);
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
      const props = { base, indicator: indicatorOf(base, now), runs, users, now };
      return show(call, { place: "fleet" }, <OperatorBase {...props} owner={owner.email} />);
    })
    .get("/accounts", async (call) =>
      show(call, { place: "accounts" }, <Accounts accounts={await listAccounts(db)} now={new Date()} />),
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
