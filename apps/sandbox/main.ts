/**
 * The sandbox as a process: `SANDBOX_PORT` (4100) says where it listens.
 */
import { once } from "node:events";
import { startSandbox } from "./server";

const port = Number(process.env.SANDBOX_PORT || 4100);
if (!Number.isInteger(port) || port < 0 || port > 65_535) {
  console.error(`SANDBOX_PORT must be a port number, not "${process.env.SANDBOX_PORT}".`);
  process.exit(1);
}

try {
  const sandbox = await startSandbox({ port });
  console.log(`Sandbox: ${sandbox.url}\nAPI key: ${sandbox.key}`);
  await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
  await sandbox.stop();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}
