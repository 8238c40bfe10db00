/**
 * Reads `basetide.yaml`. Every error has the line, the reason and the remedy, and all errors of a file are found at once.
 */
import { type Document, isMap, LineCounter, parseDocument } from "yaml";
import type { z } from "zod";
import { CliError } from "../failure";
import { baseKey, type Contract, contractSchema, VERSION } from "./schema";

export interface Problem {
  line: number;
  message: string;
}

/** The file cannot be used; nothing was changed. */
export class ContractError extends CliError {
  constructor(
    readonly file: string,
    readonly problems: Problem[],
  ) {
    super("file_invalid", problems.map(({ line, message }) => `${file}:${line}: ${message}`).join("\n"));
  }
}

export type Path = (string | number)[];

export interface ParsedContract {
  contract: Contract;
  document: Document;
  file: string;
  /** The line of a part, or of the nearest part around it that is in the file. */
  lineOf: (path: Path) => number;
}

/** @throws ContractError */
export function parseContract(text: string, file: string): ParsedContract {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const lineOf = (path: Path): number => {
    for (let depth = path.length; depth > 0; depth--) {
      const at = positionOf(document, path.slice(0, depth));
      if (at !== undefined) return lines.linePos(at).line;
    }
    return 1;
  };
  const broken = document.errors.map(({ pos, code, message }) => ({
    line: lines.linePos(pos[0]).line,
    message: code === "DUPLICATE_KEY" ? "the key is there twice. Remove one of them" : message,
  }));
  if (broken.length > 0) throw new ContractError(file, broken);
  const value: unknown = document.toJS({ maxAliasCount: 100 });
  const version = (value as { version?: unknown } | null)?.version;
  if (typeof version === "number" && version > VERSION) {
    const message = `the file has version ${version}, and this basetide reads version ${VERSION}. Install a newer basetide`;
    throw new ContractError(file, [{ line: lineOf(["version"]), message }]);
  }
  const parsed = contractSchema.safeParse(value ?? {});
  if (!parsed.success) {
    const problems = parsed.error.issues.flatMap((issue) => problemsOf(issue, lineOf));
    throw new ContractError(
      file,
      problems.sort((a, b) => a.line - b.line),
    );
  }
  const contract = parsed.data as Contract;
  const twice = duplicates(contract).map(({ path, message }) => ({ line: lineOf(path), message }));
  if (twice.length > 0) throw new ContractError(file, twice);
  return { contract, document, file, lineOf };
}

/** The position of the key of a part, so that the line is right for values of several lines. */
function positionOf(document: Document, path: Path): number | undefined {
  const parent = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true);
  const last = path.at(-1);
  if (isMap(parent)) {
    const key = parent.items.find((pair) => String((pair.key as { value?: unknown }).value) === last)?.key;
    return (key as { range?: [number, number, number] } | undefined)?.range?.[0];
  }
  const node = document.getIn(path, true) as { range?: [number, number, number] } | undefined;
  return node?.range?.[0];
}

function problemsOf(issue: z.core.$ZodIssue, lineOf: (path: Path) => number): Problem[] {
  const path = issue.path as Path;
  const name = path.join(".") || "the file";
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => ({
      line: lineOf([...path, key]),
      message: `${[...path, key].join(".")} is not known. Remove it, or correct its name`,
    }));
  }
  const message = issue.message.startsWith("is ") ? issue.message : `is not valid: ${issue.message}`;
  return [{ line: lineOf(path), message: `${name} ${message}` }];
}

/** Names and ids that occur twice would be two opinions on one thing. */
function duplicates({ bases = [], workspaces = [], alerts }: Contract): { path: Path; message: string }[] {
  const lists = [
    { at: ["bases"], names: bases.map(baseKey), shown: bases.map(({ base }) => base) },
    { at: ["workspaces"], names: workspaces.map(({ name }) => name) },
    { at: ["alerts", "webhooks"], names: (alerts?.webhooks ?? []).map(({ name }) => name) },
  ];
  return lists.flatMap(({ at, names, shown = names }) =>
    names.flatMap((name, index) =>
      names.indexOf(name) === index
        ? []
        : [
            {
              path: [...at, index],
              message: `${shown[index]} is in ${at.join(".")} twice. Remove one of them`,
            },
          ],
    ),
  );
}
