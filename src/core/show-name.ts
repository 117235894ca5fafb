// Shows a name of the service to people: in outcomes and by commands. Pure.

const shownMax = 100;

/** Quotes a name, so that blanks and odd characters are visible, and cuts a long one. */
export function showName(name: string | null | undefined): string {
  if (name === undefined || name === null) return "no name";
  const whole = JSON.stringify(name.slice(0, shownMax));
  return name.length > shownMax ? `${whole} and ${name.length - shownMax} more characters` : whole;
}
