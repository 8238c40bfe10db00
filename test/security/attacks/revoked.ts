/** An account whose key the source has revoked still receives what others write through the proxy. */

import { until } from "../../support/poll";
import { type Attack, Tally } from "../attack";

const NOTICED_MS = 30_000;
const WRITES = 4;

export const revoked: Attack = {
  name: "revoked",
  finding: "S7",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { victim, third } = service.accounts;
    for (let round = 0; round < rounds; round++) {
      const source = await service.sourceBase("Shared");
      const ownerKey = await service.key({ [source.id]: "create" });
      const readKey = await service.key({ [source.id]: "read" });
      const [owners, theirs] = await Promise.all([
        service.connect(victim, source, { api_key: ownerKey, settings: { live: false } }),
        service.connect(third, source, { api_key: readKey, settings: { live: false, turbo: true } }),
      ]);
      await service.sandbox.call("DELETE", "keys", { token: readKey });
      await until(async () => (await third.base(theirs.id)).state === "needs_attention", {
        what: "the revoked key is noticed",
        timeoutMs: NOTICED_MS,
        intervalMs: 100,
      });
      // Paused or not: accounts without a valid key see nothing new.
      const isPaused = random.chance(0.5);
      if (isPaused) await third.change(theirs.id, { paused: true });
      for (let write = 0; write < WRITES; write++) {
        const secret = `SECRET ${random.int(1, 1e9)}`;
        const isNew = random.chance(0.5);
        const path = isNew ? "Tasks" : `Tasks/${random.pick(source.recordIds)}`;
        const answer = await service.call(`${source.id}/${path}`, ownerKey, {
          method: isNew ? "POST" : "PATCH",
          body: { fields: { Name: secret } },
          proxy: write,
        });
        const rows = await theirs.sql`select from tasks where name = ${secret}`;
        const where = isPaused ? "paused" : "needs attention";
        tally.add(rows.length > 0 && `${answer.status}: "${secret}" shown where the base ${where}`);
      }
      await Promise.all([service.disconnect(owners), service.disconnect(theirs)]);
    }
    return tally;
  },
};
