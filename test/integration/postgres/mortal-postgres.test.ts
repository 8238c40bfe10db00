import postgres from "postgres";
import { expect, test } from "vitest";
import { mortalPostgres } from "../../support/mortal-postgres";

test("once it has recovered from the end of a backend, a server can be copied, written to and replaced", async () => {
  await using server = await mortalPostgres();
  const client = postgres(server.url, { max: 1, onnotice: () => {} });
  await client`create table kept (id integer)`;
  expect(server.killBackend()).toBe(true);
  await server.recovered();
  await client.end({ timeout: 1 });
  await using standby = await server.standby();
  await standby.setSynchronous(true);
  const writer = postgres(server.url, { max: 1, onnotice: () => {} });
  await writer`insert into kept values (1)`;
  await writer.end({ timeout: 1 });
  await server.failOver(standby, async () => {});
  const reader = postgres(server.url, { max: 1, onnotice: () => {} });
  expect(await reader`select id from kept`).toEqual([{ id: 1 }]);
  await reader.end({ timeout: 1 });
});
