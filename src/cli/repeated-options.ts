// Options given twice: refused, but for those that may be repeated.
import { type Command, Option } from "commander";

/** An option that may be given more than once. */
export class RepeatableOption extends Option {}

/** Makes a command refuse an option given twice: commander would drop the first value. */
export function refuseRepeats(command: Command): void {
  for (const option of command.options) {
    if (option.variadic || option instanceof RepeatableOption) continue;
    let given = 0;
    command.on(`option:${option.name()}`, () => {
      given += 1;
      if (given > 1) command.error(`error: option '${option.flags}' is given twice: once is possible`);
    });
  }
  for (const one of command.commands) refuseRepeats(one);
}
