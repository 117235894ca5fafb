// Puts environment variables into the values of a policy file: ${NAME} and ${NAME:-default}; $${ stands for ${.
// Called by yaml-file.ts on single values after YAML is read, so a variable can never add a key or break out of quotes.

/** Variables by name; an empty one counts as unset. */
export type Variables = Readonly<Record<string, string | undefined>>;

/** The value with its variables put in, or what is wrong with it and at which index of the text. */
export type Substituted =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly reference: string; readonly message: string; readonly hint: string };

const reference = /\$(\$\{)|\$\{([^}]*)(\}?)/g;
const referenceBody = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s;

/** Puts variables into one value, and tells `used` each one that came from the environment. The result is not looked at again, and no message holds a variable's value. */
export function substitute(
  text: string,
  variables: Variables,
  used: (name: string, value: string) => void = () => {},
): Substituted {
  let failure: Substituted | undefined;
  const result = text.replace(reference, (whole: string, escaped?: string, body?: string, close?: string) => {
    if (escaped !== undefined) return escaped;
    const match = close === "}" ? referenceBody.exec(body ?? "") : null;
    const name = match?.[1];
    if (name === undefined) {
      const hint = `write \${NAME} or \${NAME:-default}; for a literal \${ write $\${`;
      failure ??= { ok: false, reference: whole, message: "this is not a variable", hint };
      return "";
    }
    const own = Object.hasOwn(variables, name) ? variables[name] : undefined;
    if (own) used(name, own);
    const value = own || match?.[2];
    if (value === undefined) {
      const message = `the environment variable ${name} is not set`;
      failure ??= { ok: false, reference: whole, message, hint: `set ${name}, or give a default: \${${name}:-value}` };
    }
    return value ?? "";
  });
  return failure ?? { ok: true, text: result };
}
