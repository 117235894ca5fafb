// How a name that the service gave is shown to people: in outcomes and by commands. Pure.

const shownMax = 100;

/** A name as it is shown: quoted, so that blanks and odd characters are seen, and not too long. */
export function showName(name: string | null | undefined): string {
  if (name === undefined || name === null) return "no name";
  const whole = JSON.stringify(name.slice(0, shownMax));
  return name.length > shownMax ? `${whole} and ${name.length - shownMax} more characters` : whole;
}
