/**
 * A second base in an account's own database names another user: the role of the bases there is replaced, and they lose
 * their tables.
 */
import { type Attack, Tally } from "../attack";
import { ownDatabase } from "./hostile-postgres";

export const secondRole: Attack = {
  name: "second-role",
  finding: "S35",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { mallory } = service.accounts;
    for (let round = 0; round < rounds; round++) {
      await using database = await ownDatabase(service);
      const name = `other_${random.int(1, 1e9)}`;
      const own = new URL(database.url).username;
      const admin = service.pool(service.elsewhere.url);
      await admin.unsafe(`create role ${name} login password 'own'`);
      await admin.unsafe(
        `grant create, connect on database ${new URL(database.url).pathname.slice(1)} to ${name}`,
      );
      const [first, second] = [await service.sourceBase("First"), await service.sourceBase("Second")];
      const keys = [
        await service.key({ [first.id]: "create" }),
        await service.key({ [second.id]: "create" }),
      ];
      const destination = { kind: "external" as const, url: database.url, schema: "one" };
      const base = await service.connect(mallory, first, {
        api_key: keys[0]!,
        settings: { live: false },
        destination,
      });
      const other = Object.assign(new URL(database.url), { username: name }).href;
      const answer = await mallory.api("POST", "bases", {
        platform: "airtable",
        api_key: keys[1]!,
        base_id: second.id,
        destination: { kind: "external", url: other, schema: "two" },
      });
      const url = await mallory.credentials(base.id);
      tally.add(new URL(url).username !== own && `${answer.status}: the first base is synced as ${name}`);
      tally.add(answer.status !== 409 && `the second user is accepted: ${answer.status}`);
      await service.disconnect(base);
      if (answer.status === 201) await mallory.disconnect((JSON.parse(answer.text) as { id: string }).id);
    }
    return tally;
  },
};
