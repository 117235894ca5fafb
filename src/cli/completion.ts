// `syncline completion SHELL`: a script that completes commands, options and their values, made
// from the definitions of all commands; and names of policies, which it asks Redis for.
import { Argument, type Command, InvalidArgumentError } from "commander";
import { findRunningSet } from "../queries/policy-set.ts";
import type { CommandIo } from "./command-io.ts";
import { type RedisOptions, redisCommand, redisTarget, withStore } from "./shared-options.ts";

const help = `
Names of policies come from those that run: REDIS_URL and SYNCLINE_PREFIX say where.

Examples:
  $ echo 'source <(syncline completion bash)' >> ~/.bashrc
  $ echo 'source <(syncline completion zsh)' >> ~/.zshrc
  $ syncline completion fish > ~/.config/fish/completions/syncline.fish`;

const scripts = { bash: bashScript, zsh: zshScript, fish: fishScript };
type Shell = keyof typeof scripts;

/** The command `completion`. `loadAll` makes every command with its options and description. */
export function completionCommand(io: CommandIo, loadAll: () => Promise<readonly Command[]>): Command {
  return redisCommand("completion")
    .addArgument(
      new Argument("<shell>", "bash, zsh or fish").choices(Object.keys(scripts)).argParser((word) => {
        // The scripts ask for the names of policies.
        if (word !== "policies" && !Object.hasOwn(scripts, word))
          throw new InvalidArgumentError("It is bash, zsh or fish.");
        return word;
      }),
    )
    .addHelpText("after", help)
    .action(async (shell: Shell | "policies", options: RedisOptions) => {
      if (shell !== "policies") return io.out(scripts[shell](await loadAll()));
      const found = await withStore(redisTarget(options, io), findRunningSet);
      for (const { name } of found?.set.policies ?? []) io.out(name);
    });
}

/** A command or subcommand; `path`: the words that lead to it, such as `failed list`. */
interface Place {
  readonly path: string;
  readonly command: Command;
}

function placesOf(commands: readonly Command[], before = ""): Place[] {
  return commands.flatMap((command) => {
    const path = `${before}${command.name()}`;
    return [{ path, command }, ...placesOf(command.commands, `${path} `)];
  });
}

function optionsOf({ command }: Place) {
  return command.options.filter(({ hidden }) => !hidden);
}

function takesPolicy({ command }: Place): boolean {
  return command.registeredArguments.some((argument) => /^policy|^policies/.test(argument.name()));
}

function bashScript(commands: readonly Command[]): string {
  const places = placesOf(commands);
  const values = places.flatMap((place) =>
    optionsOf(place).flatMap(({ long, argChoices }) =>
      argChoices === undefined ? [] : [`    '${place.path} ${long}') words='${argChoices.join(" ")}';;`],
    ),
  );
  const words = places.map((place) => {
    const own = [...place.command.commands.map((one) => one.name()), ...optionsOf(place).map(({ long }) => long)];
    const choices = place.command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices);
    const policies = takesPolicy(place) ? ` names=1` : "";
    return `      '${place.path}') words='${[...own, ...choices, "--help"].join(" ")}'${policies};;`;
  });
  return `_syncline() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" path= words= names= word
  for word in "\${COMP_WORDS[@]:1:$((COMP_CWORD-1))}"; do
    case "$path\${path:+ }$word" in
      ${places.map(({ path }) => `'${path}'`).join("|")}) path="$path\${path:+ }$word";;
    esac
  done
  case "$path $previous" in
${values.join("\n")}
    *' --policy') names=1;;
    *) case "$path" in
      '') words='${commands.map((command) => command.name()).join(" ")} help --help --version';;
${words.join("\n")}
    esac;;
  esac
  [ -n "$names" ] && [[ "$cur" != -* ]] && words="$words $(syncline completion policies 2>/dev/null)"
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _syncline syncline`;
}

function zshScript(commands: readonly Command[]): string {
  const load = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit";
  return `${load}\n${bashScript(commands)}`;
}

function fishScript(commands: readonly Command[]): string {
  const line = (when: string, rest: string) => `complete -c syncline -n '${when}' ${rest}`;
  const about = (text: string) => `-d '${text.replaceAll(/['\\]/g, "\\$&")}'`;
  const names = "(syncline completion policies 2>/dev/null)";
  const lines = placesOf(commands).flatMap((place) => {
    const { path, command } = place;
    const words = path.split(" ");
    const seen = (some: readonly string[]) =>
      some.map((word) => `__fish_seen_subcommand_from ${word}`).join("; and ") || "__fish_use_subcommand";
    const here = seen(words);
    return [
      line(seen(words.slice(0, -1)), `-f -a ${command.name()} ${about(command.description())}`),
      ...(takesPolicy(place) ? [line(here, `-f -a '${names}'`)] : []),
      ...optionsOf(place).map(({ long, short, required, argChoices, description }) => {
        const value = long === "--policy" ? `-xa '${names}'` : required ? "-r" : "";
        const given = argChoices === undefined ? value : `-xa '${argChoices.join(" ")}'`;
        const letter = short === undefined ? "" : ` -s ${short.slice(1)}`;
        return line(here, `-l ${long?.slice(2)}${letter} ${given} ${about(description)}`.replaceAll(/ {2,}/g, " "));
      }),
    ];
  });
  return lines.join("\n");
}
