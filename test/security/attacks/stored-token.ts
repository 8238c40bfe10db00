/** A folder or an environment that an attacker has prepared makes the command line send its stored token elsewhere. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { repoRoot } from "../../support/source-files";
import { type Attack, Tally } from "../attack";

const COMMANDS = [["bases", "list"], ["runs", "Base"], ["pull"], ["types", "Base", "--lang", "ts"]];

export const storedToken: Attack = {
  name: "stored-token",
  finding: "S28",
  async run(service, rounds, random) {
    const tally = new Tally();
    const received: string[] = [];
    const sink = Bun.serve({
      ...{ port: 0, hostname: "127.0.0.1" },
      fetch(request) {
        received.push(request.headers.get("authorization") ?? "");
        return Response.json([]);
      },
    });
    const folder = mkdtempSync(join(tmpdir(), "basetide-stored-"));
    try {
      const { token } = service.accounts.victim;
      mkdirSync(join(folder, "config/basetide"), { recursive: true });
      writeFileSync(
        join(folder, "config/basetide/config.json"),
        JSON.stringify({ url: service.consoleUrl, token }),
      );
      for (let round = 0; round < rounds; round++) {
        const host = random.pick([`127.0.0.1:${sink.port}`, `localhost:${sink.port}`]);
        const url = random.pick([`http://${host}`, `http://${host}/`, `HTTP://${host}/api`]);
        const isFile = random.chance(0.5);
        writeFileSync(join(folder, ".env"), isFile ? `BASETIDE_URL=${url}\n` : "");
        const child = Bun.spawn(
          // In the folder, whose `.env` Bun reads by itself.
          [process.execPath, join(repoRoot, "apps/cli/main.ts"), ...random.pick(COMMANDS)],
          {
            cwd: folder,
            env: {
              ...{ PATH: process.env.PATH!, HOME: folder, XDG_CONFIG_HOME: join(folder, "config") },
              ...(!isFile && { BASETIDE_URL: url }),
            },
            stdin: "ignore",
            stdout: "ignore",
            stderr: "ignore",
          },
        );
        await child.exited;
        const stolen = received.splice(0).some((one) => one.includes(token));
        tally.add(stolen && `the token went to ${url} of the ${isFile ? "folder" : "environment"}`);
      }
    } finally {
      rmSync(folder, { recursive: true });
      await sink.stop(true);
    }
    return tally;
  },
};
