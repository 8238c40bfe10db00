/** Editors of a base in Airtable write names and descriptions that become structure in exported files. */
import { parse } from "yaml";
import type { Random } from "../../../apps/sandbox/random";
import { type Attack, Tally } from "../attack";

/** What some reader of a format takes for the end of a line, or hides. */
const UNSEEN = /[\v\f\u0085\u2028\u2029\ufeff\u202a-\u202e\u2066-\u2069]/;
const PARTS = [
  ..."\n \r\n \u2028 \u2029 \u0085 \v \f \ufeff \u202e".split(" "),
  ..."' \" ` ''' \"\"\" */ /* // -- # <!-- %% <% \u0024{ {{ {% }} : - ? & * ! = <<".split(" "),
  "tests:\u2028- not_null:\u2028    where: 'evil'",
  "\u0085models:\u0085- name: evil",
  "evil",
];
const LANGUAGES = ["ts", "zod", "kysely", "drizzle", "prisma", "pydantic", "sqlalchemy", "dbt", "postgrest"];

export const hostileTexts: Attack = {
  name: "hostile-texts",
  finding: "S27",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { victim } = service.accounts;
    for (let round = 0; round < rounds; round++) {
      const made = (await service.sandbox.call("POST", "bases", {
        name: text(random),
        tables: [
          {
            name: text(random),
            fields: [
              { name: "Name", type: "singleLineText" },
              { name: text(random), type: "singleLineText", description: text(random) },
              { name: text(random), type: "number", description: text(random) },
            ],
            records: [{ fields: { Name: "a" } }],
          },
        ],
      })) as { baseId: string };
      const key = await service.key({ [made.baseId]: "create" });
      const source = { id: made.baseId, recordIds: [] };
      const base = await service.connect(victim, source, { api_key: key, settings: { live: false } });
      const yaml = (await victim.api("GET", `bases/${base.id}/dbt-sources`)).text;
      const sources = yaml.startsWith("{") ? (JSON.parse(yaml) as { yaml?: string }).yaml! : yaml;
      tally.add(UNSEEN.test(sources) && `dbt-sources has ${JSON.stringify(UNSEEN.exec(sources)![0])}`);
      const columns = parse(sources).sources[0].tables[0].columns as Record<string, unknown>[];
      const isGrown = columns.length !== 5 || columns.slice(2).some(({ tests }) => tests !== undefined);
      tally.add(isGrown && `dbt-sources has ${JSON.stringify(columns)}`);
      for (const lang of LANGUAGES) {
        const { files } = await victim.ask<{ files: { path: string; text: string }[] }>(
          "GET",
          `bases/${base.id}/types?lang=${lang}`,
        );
        for (const { path, text: content } of files)
          tally.add(UNSEEN.test(content) && `${path} has ${JSON.stringify(UNSEEN.exec(content)![0])}`);
      }
      await service.disconnect(base);
    }
    return tally;
  },
};

function text(random: Random): string {
  const parts = Array.from({ length: random.int(2, 8) }, () => random.pick(PARTS));
  return `${random.int(1, 1e6)} ${parts.join("")}`;
}
