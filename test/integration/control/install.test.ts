/** Updates a replica's functions while readers, writers and another version of Basetide are active. */
import { expect, test, vi } from "vitest";
import { ensureInstalled, installReplica } from "../../../core/replica";
import { until } from "../../support/poll";
import { readerOf, type TestReplica, testReplica } from "../../support/replica";

vi.setConfig({ testTimeout: 60_000 });

const target = ({ ownerUrl, role }: TestReplica) => ({ url: ownerUrl, schema: "public", role });
const version = async ({ replica }: TestReplica) =>
  (await replica.sql`select obj_description('public_swap'::regnamespace) as version`)[0]!.version as string;
const pretend = ({ replica }: TestReplica, comment: string) =>
  replica.sql.unsafe(`comment on schema public_swap is '${comment}'`);

test("open read transactions neither block an installation nor wait for it", async () => {
  await using made = await testReplica();
  await using reader = readerOf(made.readerUrl);
  const held = await reader.reserve();
  await held`begin`;
  for (const name of ["__sync_meta__", "_sync_meta", "_sync_issues"]) await held`select from ${held(name)}`;
  const before = await version(made);
  await pretend(made, "0123456789abcdef");
  await ensureInstalled(made.replica, target(made));
  expect(await version(made)).toBe(before);
  await held`commit`;
  held.release();
});

test("while a writer locks the installed objects, others do not wait behind the installation, which ends after the writer", async () => {
  await using made = await testReplica();
  const before = await version(made);
  await pretend(made, "0123456789abcdef");
  await using writer = readerOf(made.ownerUrl);
  await using other = readerOf(made.ownerUrl);
  await using watcher = readerOf(made.ownerUrl);
  const note = (sql: typeof other, id: string) =>
    sql`insert into public_swap._recent_writes (table_id, record_id, applied_version, gone) values ('tbl', ${id}, 1, false)`;
  const held = await writer.reserve();
  await held`begin`;
  await note(held as never, "rec1");
  const installed = ensureInstalled(made.replica, target(made));
  await until(
    async () =>
      (
        await watcher`select from pg_locks where relation = 'public_swap._recent_writes'::regclass and not granted`
      ).length > 0,
    { what: "the installation waits for the writer" },
  );
  await other`set statement_timeout = '5s'`;
  await note(other, "rec2");
  await held`commit`;
  held.release();
  await installed;
  expect(await version(made)).toBe(before);
});

test("an older version leaves the functions of a newer one unchanged, and a newer one replaces those of an older one", async () => {
  await using made = await testReplica();
  const ours = await version(made);
  const [revision = ""] = ours.split(" ");
  const newer = `${Number(revision) + 1} fedcba9876543210`;
  await pretend(made, newer);
  await ensureInstalled(made.replica, target(made));
  await installReplica(made.ownerUrl, { schema: "public", role: made.role });
  expect(await version(made)).toBe(newer);
  for (const older of ["0123456789abcdef", `${Number(revision) - 1} 0123456789abcdef`, `${revision} other`]) {
    await pretend(made, older);
    await ensureInstalled(made.replica, target(made));
    expect(await version(made)).toBe(ours);
  }
});
