/** Registers a server for new databases, after it was asked whether it can hold them. */
import { isProblem } from "../../check-result";
import type { Context } from "../../context";
import { BasetideError } from "../../errors";
import { addCluster, type Cluster, checkCluster, type NewCluster, sharesOpenControl } from "../placement";

/** @throws BasetideError `conflict` with the first problem of the server and its remedy; as `addCluster` */
export async function addCheckedCluster(
  ctx: Pick<Context, "config" | "db" | "secrets" | "actor">,
  cluster: NewCluster,
): Promise<Cluster> {
  const { adminUrl } = cluster;
  // `addCluster` says what is wrong with one that is no URL.
  if (!URL.canParse(adminUrl)) return addCluster(ctx, cluster);
  const problem = (await checkCluster(adminUrl)).find(isProblem);
  if (problem) throw new BasetideError("conflict", `${problem.message}. ${problem.remedy}.`);
  if (await sharesOpenControl(ctx.db, adminUrl))
    throw new BasetideError(
      "conflict",
      "This server holds the control plane, whose database every role may connect to, also those of customers. Close that database first: `operator doctor` prints the statement.",
    );
  return addCluster(ctx, cluster);
}
