/** `basetide types`: the tables of a base as types of a programming language. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { type Command, Option } from "commander";
import { printResult } from "../../core/terminal";
import { findBase } from "./base-ref";
import { apiFacts, dataOf } from "./client";
import { type Common, command } from "./commands";
import { CliError, EXIT } from "./failure";
import { openClient } from "./session";

interface TypesOptions extends Common {
  lang: (typeof apiFacts.typesLanguages)[number];
  out?: string;
  check?: boolean;
}

export function addTypesCommand(program: Command): void {
  program.addCommand(
    command("types", "the tables as types and schemas of a programming language")
      .argument("<base>", "id, Airtable id or name")
      .addOption(
        new Option("--lang <lang>", "the language or tool").choices(apiFacts.typesLanguages).default("ts"),
      )
      .option("-o, --out <folder>", "write the files here; else a single file is printed")
      .option("--check", "write nothing; exit with 2 if a file in --out differs")
      .action(async (reference: string, options: TypesOptions) => writeTypes(reference, options)),
  );
}

async function writeTypes(
  reference: string,
  { lang, out, check, json = false }: TypesOptions,
): Promise<void> {
  const client = openClient();
  const { id } = await findBase(client, reference);
  const params = { path: { id }, query: { lang } };
  const answer = await dataOf(client.GET("/api/v1/bases/{id}/types", { params }));
  if (!out) {
    if (check) throw new CliError("usage", "--check needs --out: the folder with the files to compare.");
    if (json) return printResult(answer, true, String);
    if (answer.files.length > 1)
      throw new CliError("usage", `${lang} has several files. Name a folder with --out.`);
    process.stdout.write(answer.files[0]!.text);
    return;
  }
  // The service names the files; none of them may be outside of the folder.
  const files = answer.files.map(({ path, text }) => ({ path: join(out, basename(path)), text }));
  const changed = files.filter(({ path, text }) => !existsSync(path) || readFileSync(path, "utf8") !== text);
  if (!check) {
    mkdirSync(out, { recursive: true });
    for (const { path, text } of changed) writeFileSync(path, text);
  }
  const paths = changed.map(({ path }) => path);
  const verb = check ? "differs" : "written";
  printResult(
    { changed: paths },
    json,
    () => paths.map((path) => `${path}: ${verb}`).join("\n") || "No difference",
  );
  if (check && paths.length > 0) process.exitCode = EXIT.different;
}
