/**
 * An ordinary tenant's load, at the rates of the attacks: on a machine with two cores this also slows others. An attack
 * must not slow them by more.
 */
import { type Attack, paced, Tally } from "./attack";

const BASES = 4;
const SECONDS = 5;
/** The source allows each base five calls a second. */
const CALLS_PER_SECOND = 20;
const STATEMENTS_PER_SECOND = 12;
const PAGES_PER_SECOND = 6;

const times = (perSecond: number) => Array.from({ length: perSecond * SECONDS }, (_, at) => at);

export const ordinary: Attack = {
  name: "(ordinary)",
  finding: "",
  async run(service) {
    const { third } = service.accounts;
    const bases = await Promise.all(
      Array.from({ length: BASES }, async () => {
        const source = await service.sourceBase("Ordinary");
        const key = await service.key({ [source.id]: "create" });
        return service.connect(third, source, { api_key: key, settings: { live: false } });
      }),
    );
    const browser = service.browser("198.51.100.8");
    await browser.post("/sign-in", { email: third.email, password: third.password, next: "/bases" });
    // Their tables are rebuilt, and SQL shows the field.
    for (const { source } of bases)
      await service.sandbox.call("POST", `bases/${source.id}/tables/Tasks/fields`, {
        name: "Due",
        type: "singleLineText",
      });
    await Promise.all([
      paced(times(CALLS_PER_SECOND), CALLS_PER_SECOND, async (at) => {
        const { source, key } = bases[at % BASES]!;
        const isWrite = at % 3 === 0;
        await (isWrite
          ? service.call(`${source.id}/Tasks/${source.recordIds[at % source.recordIds.length]}`, key, {
              method: "PATCH",
              body: { fields: { Name: `ordinary ${at}` } },
              proxy: at,
            })
          : service.call(`${source.id}/Tasks?maxRecords=3`, key, { proxy: at }));
      }),
      paced(times(STATEMENTS_PER_SECOND), STATEMENTS_PER_SECOND, async (at) => {
        await bases[at % BASES]!.sql`select id, name, amount from tasks order by name`;
      }),
      paced(times(PAGES_PER_SECOND), PAGES_PER_SECOND, () => browser.get("/bases")),
    ]);
    for (const base of bases) await service.disconnect(base);
    return new Tally();
  },
};
