/** `basetide completion`: scripts for bash, zsh and fish, made of the commands themselves. */
import { Argument, type Command } from "commander";

interface Completed {
  /** The words before: `bases list`. */
  path: string[];
  words: { word: string; about: string }[];
}

export function addCompletionCommand(program: Command): void {
  program
    .command("completion")
    .description("a script that completes commands and options: source <(basetide completion bash)")
    .addArgument(new Argument("<shell>", "your shell").choices(["bash", "zsh", "fish"]))
    .action((shell: "bash" | "zsh" | "fish") => {
      process.stdout.write(scripts[shell](completedBy(program, [])));
    });
}

function completedBy(command: Command, path: string[]): Completed[] {
  const own = [
    ...command.commands.map((one) => ({ word: one.name(), about: one.description() })),
    ...command.options.flatMap((one) => (one.long ? [{ word: one.long, about: one.description }] : [])),
  ];
  return [
    { path, words: own },
    ...command.commands.flatMap((one) => completedBy(one, [...path, one.name()])),
  ];
}

const wordsOf = ({ words }: Completed) => words.map(({ word }) => word).join(" ");
/** Two levels of commands are all that there are. */
const caseOf = ({ path }: Completed) => (path.length === 2 ? path.join(" ") : (path[0] ?? ""));

const scripts = {
  bash: (all: Completed[]) => `_basetide() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path="" word words
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do [[ $word == -* ]] || path="\${path:+$path }$word"; done
  case "$path" in
${all
  .filter(({ path }) => path.length > 0)
  .sort((a, b) => b.path.length - a.path.length)
  .map((one) => `    "${caseOf(one)}" | "${caseOf(one)} "*) words="${wordsOf(one)}" ;;`)
  .join("\n")}
    *) words="${wordsOf(all[0]!)}" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _basetide basetide
`,
  zsh: (all: Completed[]) => `#compdef basetide
autoload -U +X bashcompinit && bashcompinit
${scripts.bash(all)}`,
  fish: (all: Completed[]) =>
    all
      .flatMap(({ path, words }) =>
        words.map(({ word, about }) => {
          const when =
            path.length === 0
              ? "__fish_use_subcommand"
              : path.map((one) => `__fish_seen_subcommand_from ${one}`).join("; and ");
          const what = word.startsWith("--") ? `-l ${word.slice(2)}` : `-a ${word}`;
          return `complete -c basetide -n '${when}' ${what} -d '${about.replace(/['\\]/g, "\\$&")}'\n`;
        }),
      )
      .join(""),
};
