// Finds in a shell command the requests that start or activate a sync job, by curl, wget or httpie,
// and names what else the command does. Of the shell it knows simple commands, variables and loops;
// it runs nothing and guesses nothing. Pure; called by job-policies.ts.

/** Where a command takes its access token from; `literal`: it stands there in plain text. */
export type TokenOrigin =
  | { readonly kind: "env"; readonly variable: string }
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "literal" };

/** One request. `baseUrl` may hold variables whose values are not known. */
export interface FoundCall {
  readonly kind: "run" | "activate";
  readonly syncJob: number;
  readonly baseUrl: string;
  readonly repository: string | undefined;
  readonly pathForm: "parentheses" | "segment";
  readonly token: TokenOrigin | undefined;
}

/** What a command does. `lost`: parts that a policy does not keep; `refused`: calls left out. */
export interface FoundCalls {
  readonly calls: readonly FoundCall[];
  readonly lost: readonly string[];
  readonly refused: readonly string[];
}

const callUrl =
  /^([^\s?]*)\/api\/syncjobs\/(run|activate)(?:(?:\(|%28)(\$\(\w+\)|[^\s)%/?]+)(?:\)|%29)|\/([^\s/?]+))\/?(?:\?(.*))?$/i;
const mention = /\/api\/syncjobs\/(run|activate)\b/i;
const tools = new Set(["curl", "wget", "http", "https"]);
/** Words before a command that change nothing about it. */
const prefix = /^(do|then|else|if|exec|command|time|nice|\{|\()$/;
/** Commands without which the result is the same. */
const idle = /^(set|echo|date|logger|exit|true|:|cd|printf|done|fi|\}|\)|\d*[<>].*)$/;

/** Finds the calls of these scripts. */
export function findCalls(scripts: readonly Script[]): FoundCalls {
  const found = { calls: [] as FoundCall[], lost: new Set<string>(), refused: [] as string[] };
  for (const { command, variables } of scripts.flatMap(readScript)) {
    const raw = wordsOf(command).map((word) => word.replace(/^(?:[({]+(?=\w)|--url=)/, ""));
    const words = raw.map((word) => fillIn(word, variables));
    const urls = words.filter((word) => callUrl.test(word));
    for (const url of urls) {
      const call = toCall(url, words, raw);
      if (typeof call === "string") found.refused.push(call);
      else found.calls.push(call);
      for (const what of lostOf(url, words)) found.lost.add(what);
    }
    if (urls.length > 0) continue;
    const first = words.find((word) => !prefix.test(word));
    if (words.some((word) => mention.test(word)))
      found.refused.push(`a call in ${nameOf(first ?? "")} is not understood`);
    else if (first !== undefined && !idle.test(first)) found.lost.add(describeOther(first));
  }
  return { calls: found.calls, lost: [...found.lost], refused: found.refused };
}

/** A request of one simple command, or why there is none. `raw`: before variables are filled in. */
function toCall(url: string, words: readonly string[], raw: readonly string[]): FoundCall | string {
  const [, base = "", action = "", inParentheses, segment, query = ""] = callUrl.exec(url) ?? [];
  const kind = action.toLowerCase() === "run" ? "run" : "activate";
  const id = inParentheses ?? segment ?? "";
  const tool = words.map(baseName).find((word) => tools.has(word));
  if (tool === undefined) return `${kind}(${id}) is called by none of curl, wget and httpie`;
  if (!/^\d{1,15}$/.test(id)) return `${kind}(${id}): the id of the sync job is not known here`;
  const method = methodOf(tool, words);
  if (method !== "POST") return `${kind}(${id}) is sent as ${method}, and a ${kind} is a POST: it starts nothing`;
  const form = inParentheses === undefined ? "segment" : "parentheses";
  const repository = new URLSearchParams(query).get("repository") ?? undefined;
  if (repository !== undefined && /[$`]/.test(repository))
    return `${kind}(${id}): the repository ${repository} is not known here`;
  return { kind, syncJob: Number(id), baseUrl: toBaseUrl(base, tool), repository, pathForm: form, token: tokenOf(raw) };
}

function baseName(word: string): string {
  return word.slice(word.lastIndexOf("/") + 1);
}

/** Without a user and a password: lostOf names them. */
function toBaseUrl(base: string, tool: string): string {
  const whole = /^(https?:\/\/|\$)/i.test(base) ? base : `${tool === "https" ? "https" : "http"}://${base}`;
  return whole.replace(/^(https?:\/\/)[^/@]*@/i, "$1");
}

function methodOf(tool: string, words: readonly string[]): string {
  const text = words.join(" ");
  if (tool === "curl") {
    const [, named] = /(?:^| )(?:-[a-zA-Z]*X ?|--request[ =])(\w+)/.exec(text) ?? [];
    if (named !== undefined) return named.toUpperCase();
    if (/(?:^| )(-[a-zA-Z]*I|--head)( |$)/.test(text)) return "HEAD";
    return /(?:^| )(-[a-zA-Z]*[dF]|--(data[\w-]*|json|form))( |=|$)/.test(text) ? "POST" : "GET";
  }
  if (tool === "wget") {
    const [, named] = /(?:^| )--method[ =](\w+)/.exec(text) ?? [];
    return named?.toUpperCase() ?? (/(?:^| )--post-(data|file)\b/.test(text) ? "POST" : "GET");
  }
  return words.find((word) => /^(GET|POST|PUT|DELETE|PATCH|HEAD)$/i.test(word))?.toUpperCase() ?? "GET";
}

/** Where the token comes from. Variables are not filled in: their values are secrets. */
function tokenOf(raw: readonly string[]): TokenOrigin | undefined {
  const text = raw.join(" ");
  const header = /\bAuthorization:\s*Bearer\s+(\$\(cat\s+[^)]+\)|`cat\s+[^`]+`|\S+)/i.exec(text)?.[1];
  const option = /--oauth2-bearer[ =](\S+)/.exec(text)?.[1];
  const ofHttpie = /(?:-A|--auth-type)[ =]bearer\b/.test(text) ? /(?:-a|--auth)[ =](\S+)/.exec(text)?.[1] : undefined;
  const value = header ?? option ?? ofHttpie;
  if (value === undefined) return undefined;
  const [, variable] = /^\$[({]?([A-Za-z_]\w*)[)}]?$/.exec(value) ?? [];
  if (variable !== undefined) return { kind: "env", variable };
  const [, path] = /^(?:\$\(|`)cat\s+([^\s)`]+)/.exec(value) ?? [];
  return path === undefined ? { kind: "literal" } : { kind: "file", path };
}

const hints: readonly (readonly [RegExp, string])[] = [
  [/^--?(retry|tries)|^-t$/, "a start is never repeated blindly here: onUnknown"],
  [/^(-k|--insecure|--no-check-certificate|--verify)/, "certificates are always checked: services.*.tls.caFile"],
  [/^(-m|--max-time|--connect-timeout|--timeout|-T)/, "services.*.timeouts.request"],
  [/^(-E|--cert|--key|--cacert|--ca-certificate|--private-key)/, "services.*.tls"],
  [/^(-u|--user|--password|a user)/, "a bearer token signs in here: services.*.token"],
  [/^(-L|--location)/, "a redirect of a start is never followed"],
  [/^flock$/, "overlap: skip does this"],
  [/^sleep/, "schedule.spread keeps starts apart"],
  [/^(mail|mailx|sendmail)$/, "notify tells people, sinks say where"],
  [/^(\.|source)$/, "what it sets is not known"],
  [/^another request/, "heartbeat requests a URL after each success"],
];
const idleOption =
  /^-[sSfgviqNnj#]*([XHodOwaA].*)?$|^--(silent|show-error|fail|fail-with-body|request|header|output|method|post-data|body-data|data[\w-]*|json|form|verbose|include|globoff|quiet|output-document|ignore-stdin|check-status|no-verbose|oauth2-bearer|auth|auth-type|write-out|no-progress-meter|compressed|body|print|pretty)(=.*)?$/;
const keptHeader = /^(authorization|content-type|content-length|accept|user-agent|host)$/i;

/** What a call has beside it that a policy does not keep. Names only: values may be secrets. */
function lostOf(url: string, words: readonly string[]): string[] {
  const rest = words.filter((word) => !callUrl.test(word));
  const tool = rest.findIndex((word) => tools.has(baseName(word)));
  const before = rest.slice(0, Math.max(tool, 0)).find((word) => !prefix.test(word));
  const options = rest.slice(tool + 1).filter((word) => /^-{1,2}[A-Za-z]/.test(word) && !idleOption.test(word));
  const isHttpie = /^https?$/.test(baseName(rest[tool] ?? ""));
  const headers = rest.flatMap((word, index) => {
    const [, option = "", name = ""] = /^(-H|--header=)?([A-Za-z][\w-]*):/.exec(word) ?? [];
    return name !== "" && (isHttpie || option !== "" || /^(-\w*H|--header)$/.test(rest[index - 1] ?? "")) ? [name] : [];
  });
  const query = [...new URLSearchParams(url.split("?")[1] ?? "").keys()];
  return [
    ...(before === undefined ? [] : [describeOther(before)]),
    ...options.map((option) => withHint(optionName(option))),
    ...headers.filter((name) => !keptHeader.test(name)).map((name) => `the header ${name}`),
    ...query.filter((name) => name !== "repository").map((name) => `the query parameter ${name}`),
    ...(/^https?:\/\/[^/]*@/i.test(url) ? [withHint("a user in the address")] : []),
  ];
}

/** `-sku` and `-k5` are -k; `--max-time=5` is --max-time. */
function optionName(option: string): string {
  if (option.startsWith("--")) return option.replace(/=.*$/s, "");
  return `-${option.replace(/^-[sSfgviqNnj#]*/, "").slice(0, 1)}`;
}

function describeOther(word: string): string {
  const name = nameOf(word);
  return withHint(tools.has(name) ? `another request by ${name}` : name);
}

/** The name of a command, unless it may hold a value. */
function nameOf(word: string): string {
  const [, variable] = /^(\w+)=/.exec(word) ?? [];
  if (variable !== undefined) return `the variable ${variable}`;
  const name = baseName(word);
  return /^[\w.[-]{1,40}$/.test(name) ? name : "a command";
}

function withHint(what: string): string {
  const hint = hints.find(([pattern]) => pattern.test(what))?.[1];
  return hint === undefined ? what : `${what} (${hint})`;
}

/** A shell text. `variables`: the text of every one whose value is known where it begins. */
export interface Script {
  readonly command: string;
  readonly variables: ReadonlyMap<string, string>;
}

const quoted = `'[^']*'|"(?:\\\\.|[^"\\\\])*"`;
/** Between simple commands: ; | & && || and the end of a line, outside of quotes. */
const parts = new RegExp(`(?:[<>]&|&>|${quoted}|\\\\.|[^;|&\\n'"\\\\]|['"\\\\])+`, "g");
/** A comment: from a # that begins a word, outside of quotes, to the end of its line. */
const comment = new RegExp(`(${quoted}|\\\\.)|(^|[\\s;&|(])#[^\\n]*`, "gm");
const nested = new RegExp(`\\b(?:ba|da|z|k)?sh\\s+-\\w*c\\s+(${quoted})`, "g");
const loop = /\bfor\s+(\w+)\s+in\s+([^;\n]+?)\s*[;\n]\s*do\b([\s\S]*?)\bdone\b/g;
const assignment = new RegExp(`^(?:export\\s+)?([A-Za-z_]\\w*)=(${quoted}|[^\\s'"]*)$`);
/** Sets a variable to what is not known here: `ID=$(next one)`, `then ID=7`, `for ID in $(ids)`. */
const unclear = /^(?:(?:then|else|do|export|local|readonly)\s+)*(?:for\s+(\w+)\s+in\b|([A-Za-z_]\w*)=)/;
/** A value that a command prints, or a `$(NAME)` of Kubernetes that is not known. */
const printed = /^(?:\$\([^()]*\)|`[^`]*`)$/;
const loopRoundsMax = 1_000;

/** The simple commands of a script, in order, each with the variables that are known at it. */
function readScript(script: Script): Script[] {
  const flat = unrollLoops(
    withoutComments(script.command.replaceAll(/\\\r?\n/g, " ")).replaceAll(
      nested,
      (_, inner: string) => `\n${withoutComments(withoutQuotes(inner))}\n`,
    ),
  );
  const commands: Script[] = [];
  let { variables } = script;
  // One set to what is not known stands for itself: `${NAME:-other}` does not become the other.
  const set = (name: string, value = `$${name}`) => {
    variables = new Map([...variables, [name, value]]);
  };
  for (const [part] of flat.matchAll(parts)) {
    const command = part.trim();
    if (command === "") continue;
    const [, name, text = ""] = assignment.exec(command) ?? [];
    if (name !== undefined) {
      const value = fillIn(withoutQuotes(text), variables);
      set(name, printed.test(value) ? undefined : value);
      continue;
    }
    commands.push({ command, variables });
    const [, looped, assigned = looped] = unclear.exec(command) ?? [];
    if (assigned !== undefined) set(assigned);
  }
  return commands;
}

function withoutComments(text: string): string {
  return text.replaceAll(comment, (_, kept?: string, before = "") => kept ?? before);
}

/** Puts in the variables that are known: `$NAME`, `${NAME}`, `${NAME:-other}`, `$(NAME)`. */
function fillIn(text: string, variables: Script["variables"]): string {
  return text.replaceAll(
    /\$(?:\{(\w+)(?::?-([^}]*))?\}|\((\w+)\)|(\w+))/g,
    (whole, braced?: string, other?: string, inPod?: string, bare?: string) =>
      variables.get(braced ?? inPod ?? bare ?? "") ?? other ?? whole,
  );
}

function wordsOf(command: string): string[] {
  const word = new RegExp(`(?:${quoted}|\\\\.|[^\\s'"\\\\])+`, "g");
  return [...command.matchAll(word)].map(([text]) => withoutQuotes(text));
}

function withoutQuotes(text: string): string {
  return text.replaceAll(
    new RegExp(`(${quoted})|\\\\(.)`, "g"),
    (_, inQuotes: string | undefined, escaped: string | undefined) => {
      if (inQuotes === undefined) return escaped ?? "";
      const inner = inQuotes.slice(1, -1);
      return inQuotes.startsWith('"') ? inner.replaceAll(/\\(["\\$`])/g, "$1") : inner;
    },
  );
}

/** A loop over what a command prints stays: its items are not known. A pod fills in `$(NAME)`. */
function unrollLoops(text: string): string {
  return text.replaceAll(loop, (whole: string, name: string, items: string, body: string) =>
    /\$\((?!\w+\))|`/.test(items)
      ? whole
      : items
          .split(/\s+/)
          .slice(0, loopRoundsMax)
          .map((item) => body.replaceAll(new RegExp(`\\$(?:\\{${name}\\}|${name}\\b)`, "g"), () => withoutQuotes(item)))
          .join("\n"),
  );
}
