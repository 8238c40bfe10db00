/** The firewall's process: forwards connections to the port FIREWALL_TARGET, and resets those beyond the rate. */
import net from "node:net";
import { BURST, PER_SECOND } from "./firewall";

const target = Number(process.env.FIREWALL_TARGET);
/** A token bucket like the kernel's. */
let [tokens, at] = [BURST, performance.now()];

const server = net.createServer((socket) => {
  const now = performance.now();
  tokens = Math.min(BURST, tokens + ((now - at) / 1000) * PER_SECOND);
  at = now;
  if (tokens < 1) {
    socket.on("error", () => {});
    socket.resetAndDestroy();
    return;
  }
  tokens -= 1;
  const far = net.connect(target, "127.0.0.1");
  socket.pipe(far);
  far.pipe(socket);
  for (const [one, other] of [
    [far, socket],
    [socket, far],
  ] as const) {
    one.on("error", () => other.destroy());
    one.on("close", () => other.destroy());
  }
});
server.listen(0, "127.0.0.1", () => process.send!((server.address() as net.AddressInfo).port));
process.on("disconnect", () => process.exit(0));
