/** Registers a server for new databases, or changes its URL, after it was asked whether it can hold them. */
import { isProblem } from "../../check-result";
import type { Context } from "../../context";
import { conflict } from "../../errors";
import {
  addCluster,
  type Cluster,
  changeCluster,
  inspectCluster,
  type NewCluster,
  sharesOpenControl,
} from "../placement";

type ClusterContext = Pick<Context, "config" | "db" | "secrets" | "actor">;

/** @throws BasetideError `conflict` with the first problem of the server and its remedy; as `addCluster` */
export async function addCheckedCluster(ctx: ClusterContext, cluster: NewCluster): Promise<Cluster> {
  await requireUsable(ctx, cluster.adminUrl);
  return addCluster(ctx, cluster);
}

/** @throws BasetideError `conflict` with the first problem of the server and its remedy; as `changeCluster` */
export async function changeCheckedCluster(
  ctx: ClusterContext,
  cluster: Omit<NewCluster, "region">,
): Promise<Cluster> {
  await requireUsable(ctx, cluster.adminUrl);
  return changeCluster(ctx, cluster);
}

async function requireUsable({ db }: ClusterContext, adminUrl: string): Promise<void> {
  // What is wrong with one that is no URL is said when it is stored.
  if (!URL.canParse(adminUrl)) return;
  const problem = (await inspectCluster(adminUrl)).results.find(isProblem);
  if (problem) throw conflict(`${problem.message}. ${problem.remedy}.`);
  if (await sharesOpenControl(db, adminUrl))
    throw conflict(
      "This server holds the control plane, whose database every role may connect to, also those of customers. Close that database first: `operator doctor` prints the statement.",
    );
}
