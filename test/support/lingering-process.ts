/**
 * A process of ours with a connection that nothing closes, as one that was being opened while it stopped; with the argument
 * `hang`, also with a resource whose release never ends; with `twice`, each signal comes again while it is delivered.
 */
import net from "node:net";
import { runProcess } from "../../core/process";

await runProcess("worker", async ({ log }, releases) => {
  if (process.argv.includes("hang")) releases.defer(() => new Promise(() => {}));
  if (process.argv.includes("twice")) process.once("SIGINT", () => void process.kill(process.pid, "SIGINT"));
  const server = net.createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address() as net.AddressInfo;
    net.connect(port, "127.0.0.1", () => log.info("connected"));
  });
});
