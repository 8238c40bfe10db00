/** One account requests objects of another by their ids, with its own token, with a wrong kind of key, or with none. */
import { type Attack, paced, Tally } from "../attack";

const PER_ROUND = 30;
const PER_SECOND = 30;

export const foreignIds: Attack = {
  name: "foreign-ids",
  finding: "(held)",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { victim, mallory } = service.accounts;
    const source = await service.sourceBase("Foreign");
    const key = await service.key({ [source.id]: "create" });
    const base = await service.connect(victim, source, { api_key: key, settings: { live: false } });
    const { database } = await victim.base(base.id);
    const workspace = await victim.ask<{ id: string }>("POST", "workspaces", {
      name: `Foreign ${random.int(1, 1e9)}`,
      plan: "team",
    });
    const { sql_user: sqlUser } = await victim.ask<{ sql_user: { id: string } }>(
      "POST",
      `bases/${base.id}/sql-users`,
      { name: "Metabase" },
    );
    const calls: [string, string, unknown?][] = [
      ["GET", `bases/${base.id}`],
      ["PATCH", `bases/${base.id}`, { paused: true }],
      ["PATCH", `bases/${base.id}`, { api_key: key }],
      ["DELETE", `bases/${base.id}`],
      ["POST", `bases/${base.id}/sync`],
      ["GET", `bases/${base.id}/runs`],
      ["GET", `bases/${base.id}/credentials`],
      ["POST", `bases/${base.id}/credentials/rotate`],
      ["GET", `bases/${base.id}/sql-users`],
      ["POST", `bases/${base.id}/sql-users`, { name: "Mine" }],
      ["GET", `bases/${base.id}/sql-users/${sqlUser.id}/credentials`],
      ["POST", `bases/${base.id}/sql-users/${sqlUser.id}/rotate`],
      ["DELETE", `bases/${base.id}/sql-users/${sqlUser.id}`],
      ["POST", `bases/${base.id}/attachment-links/revoke`],
      ["GET", `bases/${base.id}/schema-changes`],
      ["GET", `bases/${base.id}/calls`],
      ["GET", `workspaces/${workspace.id}`],
      ["PATCH", `workspaces/${workspace.id}`, { calls_per_month: 1 }],
      ["DELETE", `workspaces/${workspace.id}`],
      ["POST", "requests", { kind: "writable", database_id: database.id }],
      ["POST", "bases", existing(source.id, key, database.id)],
      [
        "POST",
        "bases",
        { ...existing(source.id, key, ""), destination: undefined, workspace_id: workspace.id },
      ],
    ];
    const before = JSON.stringify((await victim.base(base.id)).settings);
    await paced(Array(rounds * PER_ROUND), PER_SECOND, async () => {
      const [method, path, body] = random.pick(calls);
      const dressed = random.chance(0.2)
        ? path.replace(/bas_/, random.pick(["BAS_", "%62as_", "bas_%00"]))
        : path;
      const { status } = await mallory.api(method, dressed, body);
      tally.add(status >= 200 && status < 300 && `${method} ${dressed}: ${status}`);
    });
    const after = await victim.base(base.id);
    tally.add(JSON.stringify(after.settings) !== before && "the victim's settings were changed");
    await service.disconnect(base);
    return tally;
  },
};

function existing(baseId: string, key: string, databaseId: string) {
  const destination = { kind: "existing", database_id: databaseId, schema: "mine" };
  return { platform: "airtable", api_key: key, base_id: baseId, destination };
}
