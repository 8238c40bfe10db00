/** Runs worker, proxy and console as one process, which a small installation needs one of. */
import { runRoles } from "../../core/process";
import { ROLES, startAll } from "./start";

await runRoles("all", ROLES, async (contexts, releases) => {
  const ports = await startAll(contexts, releases);
  for (const role of ROLES) contexts[role].log.info({ port: ports[`${role}Port`] }, `${role} listening`);
});
